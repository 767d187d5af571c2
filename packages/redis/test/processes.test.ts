import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeRedis } from './support/describe-redis.js';

const WORKER = fileURLToPath(new URL('support/worker.ts', import.meta.url));

interface Told {
  readonly granted: number;
  readonly firstUs: number;
  readonly lastUs: number;
  readonly offered: number;
  readonly mode: string;
}

class Worker {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(...args: number[]) {
    const run = ['-C', '@elimit/source', '--import', 'tsx', WORKER, ...args.map(String)];
    const env = { ...process.env, NODE_OPTIONS: '' };
    this.child = spawn(process.execPath, run, { stdio: ['pipe', 'pipe', 'inherit'], env });
    const input = this.child.stdout as NonNullable<ChildProcess['stdout']>;
    this.#lines = createInterface({ input })[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  go(): void {
    this.child.stdin?.write('go\n');
  }

  async told(): Promise<Told> {
    return JSON.parse(await this.line()) as Told;
  }
}

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

async function ready(workers: Worker[]): Promise<void> {
  for (const worker of workers) expect(await worker.line()).toBe('ready');
}

/** The most that may be granted: burst, what came in, and the leases outstanding when it began: a tenth of the burst. */
function most(told: Told[], rate: number, burst: number): number {
  const fromUs = Math.min(...told.map(({ firstUs }) => firstUs));
  const toUs = Math.max(...told.map(({ lastUs }) => lastUs));
  return burst * 1.1 + (rate * (toUs - fromUs)) / 1e6;
}

describeRedis('processes that share a quota', () => {
  it.each([2, 8])(
    '%i of them, each offering the whole quota, are granted it once, and within the stated bound',
    async (count) => {
      server.command('FLUSHALL');
      const [rate, burst, forMs] = [1000, 500, 2500];
      const workers = Array.from(
        { length: count },
        () => new Worker(server.port, rate, burst, rate, forMs),
      );
      await ready(workers);
      for (const worker of workers) worker.go();
      const told = await Promise.all(workers.map((worker) => worker.told()));
      expect(told.map(({ mode }) => mode)).toEqual(workers.map(() => 'store'));
      const granted = told.reduce((sum, worker) => sum + worker.granted, 0);
      expect(granted).toBeLessThanOrEqual(most(told, rate, burst));
      // none of it is lost: what comes in while they run is granted, but for what lies in leases and in the bucket
      expect(granted).toBeGreaterThan((burst + (rate * forMs) / 1000) * 0.8);
    },
    60_000,
  );

  it('one that is killed with a lease costs the others no more than that, and is no holder after its life', async () => {
    server.command('FLUSHALL');
    const [rate, burst] = [1000, 1000];
    const [dying, living] = [
      new Worker(server.port, rate, burst, 200, 60_000),
      new Worker(server.port, rate, burst, 2000, 4000),
    ] as const;
    await ready([dying, living]);
    dying.go();
    await new Promise((resolve) => setTimeout(resolve, 300));
    dying.child.kill('SIGKILL');
    const holders = (): number =>
      server
        .command('HKEYS', 'elimit:shared:k')
        .split('\n')
        .filter((field) => field.startsWith('h:')).length;
    expect(holders()).toBe(1);
    living.go();
    const told = await living.told();
    expect(told.granted).toBeLessThanOrEqual(most([told], rate, burst));
    // 1000 saved and 4000 come in: at most a lease of a hundred and the dead one's own use are missing
    expect(told.granted).toBeGreaterThan(5000 * 0.8);
    expect(holders()).toBe(0); // the dead one's lease has ended, the other has left
  }, 60_000);

  it('one that was stopped past the end of its lease does not spend it afterwards', async () => {
    server.command('FLUSHALL');
    // so slow that what it had leased would show: 20 tokens in 2 s, so a lease of at most that
    const [rate, burst] = [10, 1000];
    const worker = new Worker(server.port, rate, burst, 50, 4500);
    await ready([worker]);
    worker.go();
    await new Promise((resolve) => setTimeout(resolve, 300));
    worker.child.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 2500));
    const whileStopped = server.command('HGET', 'elimit:shared:k', 't');
    worker.child.kill('SIGCONT');
    const told = await worker.told();
    const left = Number(server.command('HGET', 'elimit:shared:k', 't'));
    expect(Number(whileStopped)).toBeLessThan(1000);
    // all accounts agree: what is not there any more was granted, once
    const spent = burst - left;
    expect(spent).toBeLessThanOrEqual(told.granted + 1);
    expect(told.granted).toBeLessThanOrEqual(spent + rate * 5 + 1);
  }, 60_000);
});
