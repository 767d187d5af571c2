import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, jest } from '@jest/globals';

jest.setTimeout(180_000);

/** Runs a program of `programs/` on the sources, until it ends by itself. */
async function run(program: string, ...nodeArgs: string[]): Promise<string> {
  const file = fileURLToPath(new URL(`./programs/${program}.ts`, import.meta.url));
  const args = [...nodeArgs, '-C', '@elimit/source', '--import', 'tsx', file];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    timeout: 150_000,
  });
  expect(stderr).toBe('');
  return stdout.trim();
}

describe('a process', () => {
  it('that only makes guards, limits and protections ends by itself', async () => {
    expect(await run('only-constructs')).toBe('object');
  });

  it('ends when its server does, and not before', async () => {
    expect(await run('serves-and-ends')).toBe('queued true');
  });

  it('hears of what a queued handler throws, and goes on serving', async () => {
    expect(await run('handler-throws')).toBe('thrown by /1; queued true');
  });

  it('keeps nothing of 20 000 requests with stores of 100 KB', async () => {
    const { grownMb, wrong, queued, atOnce, inflight } = JSON.parse(
      await run('heap-of-stores', '--expose-gc'),
    ) as Record<string, number>;
    expect({ wrong, inflight }).toEqual({ wrong: 0, inflight: 0 });
    expect(queued).toBeGreaterThanOrEqual(10_000);
    expect((queued ?? 0) + (atOnce ?? 0)).toBe(22_000);
    expect(grownMb).toBeLessThan(2); // twenty stores
  });
});
