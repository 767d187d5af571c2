import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runVectorFiles } from '../../src/index.js';
import { replaysThroughGuard } from '../../src/vectors/limiter-replay.js';
import { differenceIn } from '../../src/vectors/run-vector-files.js';
import { VectorRecord } from '../../src/vectors/vector-file.js';

const golden = fileURLToPath(new URL('../../../core/test/vectors/', import.meta.url));
const read = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(golden, name), 'utf8')) as Record<string, unknown>;

describe.each([
  ['auto', 32],
  ['timeout', 19],
  ['values', 1],
])('%s', (folder, files) => {
  it(`reproduces all ${files} files`, () => {
    expect(runVectorFiles([join(golden, folder)])).toEqual({ passed: files, failed: 0, lines: [] });
  });
});

describe('recorded streams', () => {
  it.each([
    'auto/21-closed-loop-overload.json',
    'auto/29-small-limits-cannot-grow.json',
    'auto/30-too-few-samples-to-recover.json',
    'timeout/17-closed-loop.json',
  ])('%s is replayed through a guard too', (name) => {
    expect(replaysThroughGuard(new VectorRecord(read(name)))).toBe(true);
  });

  it('are not, when a completion belongs to no request', () => {
    const file = { rows: [['x', [5, 3, 1, 10, 0, 9]]], expect: [{ accepted: '1' }] };
    expect(replaysThroughGuard(new VectorRecord(file))).toBe(false);
    file.rows = [['x', [5, 3, 1, 10, 0, 10]]];
    expect(replaysThroughGuard(new VectorRecord(file))).toBe(true);
  });

  it('are not, when a request counts other calls than are out', () => {
    const file = { rows: [['x', [5, 3, 2, 10, 0, 10]]], expect: [{ accepted: '1' }] };
    expect(replaysThroughGuard(new VectorRecord(file))).toBe(false);
  });
});

/** Every number and every answer in the recorded part of a file, as paths. */
function* recordedLeaves(
  value: unknown,
  path: (string | number)[],
): Generator<(string | number)[]> {
  if (typeof value !== 'object' || value === null) yield path;
  else
    for (const [key, inner] of Object.entries(value)) yield* recordedLeaves(inner, [...path, key]);
}

function altered(file: Record<string, unknown>, path: (string | number)[]): string {
  const copy = structuredClone(file);
  let holder = copy as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) holder = holder[key] as Record<string | number, unknown>;
  const last = path.at(-1) ?? '';
  const value = holder[last];
  if (typeof value === 'number') holder[last] = value + 1;
  else if (typeof value === 'boolean') holder[last] = !value;
  else if (value === null) holder[last] = 1;
  else holder[last] = `${value as string}0`;
  return JSON.stringify(copy);
}

describe.each(['auto/16-sampling-interval.json', 'timeout/04-per-method-conf.json'])(
  '%s',
  (name) => {
    const file = read(name);
    const { initial, expect: after, trace, completions } = file;
    const paths = [...recordedLeaves({ initial, expect: after, trace, completions }, [])];

    it('is noticed when any one recorded value is another', () => {
      expect(paths.length).toBeGreaterThan(30);
      const missed = paths.filter((path) => differenceIn(altered(file, path)) === undefined);
      expect(missed).toEqual([]);
    });
  },
);

it('sees the last digit of a peak rate', () => {
  const text = readFileSync(join(golden, 'auto/16-sampling-interval.json'), 'utf8');
  const wrong = text.replace('49254.09991314611', '49254.09991314612');
  expect(wrong).not.toBe(text);
  expect(differenceIn(wrong)).toMatchObject({
    where: 'expect[2][2]',
    expected: 49254.09991314612,
    got: 49254.09991314611,
  });
});

describe('a file fails', () => {
  const file = read('timeout/01-initial-decisions.json');
  it.each<{ it: string; change: Record<string, unknown>; where: string }>([
    { it: 'of a kind that nobody knows', change: { kind: 'automatic' }, where: 'kind' },
    { it: 'of a format that nobody knows', change: { format: 2 }, where: 'format' },
    { it: 'with a field that nobody reads', change: { workers: 4 }, where: 'workers' },
    {
      it: 'with a setting that nobody knows',
      change: { flags: { timeout_cl_x: 1 } },
      where: 'flags',
    },
    {
      it: 'with a column that nobody knows',
      change: { state_columns: ['x'] },
      where: 'state_columns',
    },
    {
      it: 'with a row that nobody knows',
      change: { rows: [['z']], expect: [null] },
      where: 'rows[0]',
    },
    {
      it: 'with more in a row than is read',
      change: { rows: [['w', 1, 2]], expect: [null] },
      where: 'rows[0].length',
    },
    { it: 'with a row without its expectation', change: { expect: [] }, where: 'expect.length' },
    { it: 'with a field of a wrong type', change: { start_us: '1' }, where: 'start_us' },
    {
      it: 'with an inner field that nobody reads',
      change: { conf: { timeout_ms: 500, max_concurrency: 100, x: 1 } },
      where: 'conf.x',
    },
    {
      it: 'with a setting that the engine refuses',
      change: { flags: { timeout_cl_max_concurrency: 'x' } },
      where: 'replay',
    },
  ])('$it', ({ change, where }) => {
    expect(differenceIn(JSON.stringify({ ...file, ...change }))?.where).toBe(where);
  });

  it('that is no JSON', () => {
    expect(differenceIn('{')?.where).toBe('replay');
  });
});

describe('the command', () => {
  const main = fileURLToPath(new URL('../../src/vectors/main.ts', import.meta.url));
  const run = (...paths: string[]) => {
    const { status, stdout } = spawnSync(
      process.execPath,
      ['--conditions=@elimit/source', '--import', 'tsx', main, ...paths],
      { encoding: 'utf8' },
    );
    return { status, lines: stdout.trim().split('\n') };
  };
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'elimit-vectors-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('prints the count last, and ends with 0', () => {
    const file = join(golden, 'timeout/01-initial-decisions.json');
    expect(run(file)).toEqual({ status: 0, lines: ['1 passed, 0 failed'] });
  });

  it('prints a line for each file that differs, and ends with 1', () => {
    const file = read('timeout/01-initial-decisions.json');
    writeFileSync(join(folder, 'wrong.json'), JSON.stringify({ ...file, completions: 3 }));
    writeFileSync(join(folder, 'right.json'), JSON.stringify(file));
    expect(run(folder)).toEqual({
      status: 1,
      lines: [
        `${join(folder, 'wrong.json')}: completions: expected 3, got 0`,
        '1 passed, 1 failed',
      ],
    });
  });

  it('ends with 1 when there is no file at all', () => {
    const { status, lines } = run();
    expect(status).toBe(1);
    expect(lines.at(-1)).toBe('0 passed, 0 failed');
  });
});
