import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeRedis } from '../../../packages/redis/test/support/describe-redis.js';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

interface Process {
  readonly child: ChildProcess;
  readonly url: string;
  readonly said: string[];
}

let redis: RedisServer;
let processes: Process[] = [];

async function start(): Promise<Process> {
  const child = spawn(process.execPath, ['-C', '@elimit/source', '--import', 'tsx', MAIN], {
    // a test machine may be slow: here it is not about the bound on one check
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis.url, STORE_TIMEOUT_MS: '5000' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: string[] = [];
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise<string>((resolve) => {
    lines.on('line', (line) => {
      said.push(line);
      if (line.startsWith('http')) resolve(line);
    });
  });
  return { child, url, said };
}

beforeAll(async () => {
  redis = await RedisServer.start();
  processes = await Promise.all([start(), start()]);
}, 60_000);
afterAll(async () => {
  await Promise.all(
    processes.map(
      ({ child }) => new Promise((resolve) => child.once('exit', resolve).kill('SIGTERM')),
    ),
  );
  await redis.stop();
});

/** Asks the processes in turn. */
async function ask(count: number, path: string, token: string): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i++) {
    const { url } = processes[i % processes.length] as Process;
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
    await answer.text();
    statuses.push(answer.status);
  }
  return statuses;
}
const granted = (statuses: number[]): number => statuses.filter((status) => status === 200).length;

describeRedis('an API on two processes and one Redis', () => {
  it('has one quota for each user, whichever process is asked', async () => {
    const statuses = await ask(20, '/api/orders', 'token-ann');
    // ten, and one for each second that twenty requests took
    expect(granted(statuses)).toBeGreaterThanOrEqual(10);
    expect(granted(statuses)).toBeLessThanOrEqual(14);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(200));
    expect(await ask(2, '/api/export', 'token-bob')).toEqual([200, 200]);
    expect(await ask(1, '/api/export', 'token-bob')).toEqual([429]);
    expect(await ask(2, '/healthz', 'nobody')).toEqual([200, 200]);
    expect(await ask(1, '/api/orders', 'nobody')).toEqual([401]);
  });

  it('goes on without Redis, with one event in each process, and comes back', async () => {
    await redis.kill();
    const statuses = await ask(4, '/api/orders', 'token-bob');
    expect(statuses.every((status) => status === 200 || status === 429)).toBe(true);
    await redis.up();
    const modes = ({ said }: Process): string[] =>
      said
        .filter((line) => line.includes('"mode","name":"user"'))
        .map((line) => /"to":"(\w+)"/.exec(line)?.[1] ?? line);
    const until = Date.now() + 20_000;
    while (!processes.every((one) => modes(one).length === 2)) {
      if (Date.now() > until) throw new Error(JSON.stringify(processes.map(({ said }) => said)));
      await ask(2, '/api/orders', 'token-bob');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    // the limit for everybody may have lived on its lease and never have noticed
    for (const one of processes) expect(modes(one)).toEqual(['local', 'store']);
  }, 60_000);
});
