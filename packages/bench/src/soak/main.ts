// npm run -s soak: mixed traffic with faults, then everything must be back where it was.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort, RedisServer } from '@elimit/testkit';
import { CommandLine } from '../command-line.js';
import { offerLoad } from '../http/load.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import { ROUGH_CLIENTS } from './rough-clients.js';
import type { Measure } from './service.js';

const command =
  new CommandLine(`npm run -s soak -- [options]   mixed traffic with faults, then everything must be back; exits 1 if not
  --minutes N   how long (default: 60)
  --quick       a minute and a half
  --json FILE   the report; beside it, with the ending .txt, what was printed
`);
const { values } = command.read({
  options: {
    minutes: { type: 'string', default: '60' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
});
const minutes = values.quick ? 1.5 : command.number('minutes', values.minutes, 0.1, 24 * 60);

/** Traffic before the first measure: pools, caches and compiled code are there after it. */
const WARM_UP_MS = 15_000;
/** Longer than any hold time of the service. */
const DRAIN_MS = 12_000;
const FAULT_EVERY_MS = 7_000;
/** How long a Redis or a backend stays away when it is killed. */
const AWAY_MS = 1500;
/** What a heap may grow by, in megabytes: estimates, histograms and names fill up in the first minutes. */
const HEAP_ROOM_MB = 12;

/** At the start: an hour later the checkout may stand elsewhere. */
const provenance = provenanceOf({
  command: 'npm run -s soak --',
  sources: ['core', 'node-http', 'express', 'client', 'fetch', 'redis', 'status'].map(
    (name) => `packages/${name}/src`,
  ),
  packages: ['express', 'undici', 'ioredis'],
});
const stopping: (() => unknown)[] = [];
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function child(
  file: string,
  args: readonly string[],
  execArgv: readonly string[] = [],
): ChildProcess {
  const started = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    execArgv: [...process.execArgv, ...execArgv],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  stopping.push(() => started.kill('SIGKILL'));
  return started;
}

/** A backend that can be stopped, killed and brought back on its port. */
class Backend {
  #process: ChildProcess | undefined;

  constructor(readonly port: number) {}

  async up(): Promise<void> {
    this.#process = child('./node.ts', [`${this.port}`]);
    await once(this.#process, 'message');
  }

  async kill(): Promise<void> {
    if (this.#process === undefined) return;
    const exit = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exit;
  }

  /** It accepts, and never answers: nobody is there to. */
  async hang(): Promise<void> {
    this.#process?.kill('SIGSTOP');
    await sleep(2000);
    this.#process?.kill('SIGCONT');
  }
}

const redis = RedisServer.program() === undefined ? undefined : await RedisServer.start();
if (redis === undefined) console.log(`skipped: faults of Redis: ${RedisServer.MISSING}`);
else stopping.push(() => redis.stop());
const backends = [new Backend(await freePort()), new Backend(await freePort())];
await Promise.all(backends.map((backend) => backend.up()));
const service = child(
  './service.ts',
  [`${redis?.port ?? ''}`, ...backends.map(({ port }) => `${port}`)],
  ['--expose-gc'],
);
const [{ port }] = (await once(service, 'message')) as [{ port: number }];

async function measure(): Promise<Measure> {
  const answer = once(service, 'message');
  service.send('measure');
  const [found] = (await answer) as [Measure];
  return found;
}

async function restart(one: RedisServer | Backend | undefined): Promise<void> {
  await one?.kill();
  await sleep(AWAY_MS);
  await one?.up();
}

/** Every kind of traffic at once; `faults` breaks what the service stands on, in turn. */
async function traffic(durationMs: number, faults: boolean): Promise<number> {
  const endMs = performance.now() + durationMs;
  let answered = 0;
  const loads = [
    { path: '/work', rate: 60 },
    { path: '/cpu', rate: 40 },
    { path: '/out', rate: 40 },
    { path: '/limited', rate: 40 },
  ].map(async (load, i) => {
    const result = await offerLoad({
      ...load,
      port,
      client: i % 2 === 0 ? 'hangUp' : 'oneShot',
      durationMs,
      seed: i + 1,
    });
    answered += result.inTime;
  });
  const rough = (async () => {
    for (let i = 0; performance.now() < endMs; i++) {
      ROUGH_CLIENTS[i % ROUGH_CLIENTS.length]?.(port);
      await sleep(70);
    }
  })();
  const bursts = (async () => {
    for (let i = 0; performance.now() + 8_000 < endMs; i++) {
      await sleep(5_000);
      await offerLoad({
        port,
        path: '/cpu',
        client: 'hangUp',
        rate: 900,
        durationMs: 2_000,
        seed: 100 + i,
      });
    }
  })();
  const breaking = (async () => {
    if (!faults) return;
    for (let i = 0; performance.now() + FAULT_EVERY_MS < endMs; i++) {
      await sleep(FAULT_EVERY_MS - 2_000);
      if (i % 3 === 0) await restart(redis);
      else if (i % 3 === 1) await restart(backends[i % 2]);
      else await backends[i % 2]?.hang();
    }
  })();
  await Promise.all([...loads, rough, bursts, breaking]);
  return answered;
}

try {
  console.log(`soak: warm-up, then ${minutes} minutes of mixed traffic with faults`);
  await traffic(WARM_UP_MS, false);
  await sleep(DRAIN_MS);
  const before = await measure();
  const answered = await traffic(minutes * 60_000, true);
  await sleep(DRAIN_MS);
  const after = await measure();

  const problems: string[] = [];
  if (after.inflight !== 0) problems.push(`${after.inflight} calls are still counted in flight`);
  if (after.heapMb > before.heapMb + HEAP_ROOM_MB) {
    problems.push(`the heap grew from ${before.heapMb} to ${after.heapMb} MB`);
  }
  for (const [kind, many] of Object.entries(after.handles)) {
    // outbound connections are kept for reuse: as many as there are backends may have come since
    const spare = kind === 'TCPSocketWrap' ? backends.length * 8 : 1;
    const had = before.handles[kind] ?? 0;
    if (many > had + spare) problems.push(`${kind}: ${had} handles before, ${many} after`);
  }
  for (const complaint of after.complaints) problems.push(complaint);
  if (after.admitted <= before.admitted) problems.push('nothing was admitted');
  if (after.refused <= before.refused) problems.push('nothing was refused: there was no overload');
  if (minutes >= 1 && after.isolations <= before.isolations)
    problems.push('no endpoint was isolated');

  const printed = [
    ...provenanceLines(provenance),
    `answered in time   ${answered}`,
    `admitted, refused  ${after.admitted}, ${after.refused}`,
    `isolations         ${after.isolations}`,
    `in flight          ${before.inflight} before, ${after.inflight} after`,
    `heap               ${before.heapMb} MB before, ${after.heapMb} MB after`,
    `handles            ${JSON.stringify(before.handles)} before, ${JSON.stringify(after.handles)} after`,
    ...problems.map((problem) => `PROBLEM            ${problem}`),
    `soak: ${problems.length === 0 ? 'ok' : 'FAILED'}`,
  ];
  console.log(printed.join('\n'));
  if (values.json !== undefined) {
    saveReport(values.json, { ...provenance, minutes, answered, before, after, problems }, printed);
  }
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  await Promise.all(stopping.map((stop) => stop()));
}
