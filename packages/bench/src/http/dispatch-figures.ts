// The figures of docs/dispatch.md: what the dispatch queue does to a server with a fixed limit, and what it costs.
//
//   node -C @elimit/source --import tsx packages/bench/src/http/dispatch-figures.ts [--quick]
//     [--workloads cpu,mixed] [--factors 0.8,3] [--clients hangUp] [--arms none,limit] [--limit 16] [--seconds 4]
import { parseArgs } from 'node:util';
import type { Arm, Reading } from './app-child.js';
import { Child, closedLoopFromChild, loadFromChild } from './child.js';
import { requestFor, type Workload } from './handlers.js';
import type { ClientKind, ClosedLoopResult, LoadResult } from './load.js';

const { values: asked } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    workloads: { type: 'string', default: 'cpu,async,mixed,post,later' },
    factors: { type: 'string', default: '0.5,0.8,3,6' },
    clients: { type: 'string', default: 'patient,hangUp,oneShot' },
    arms: { type: 'string', default: 'none,limitWithoutDispatch,limit,protect' },
    limit: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '4' },
    hello: { type: 'string', default: '5' },
  },
});
const durationMs = (asked.quick ? 2 : Number(asked.seconds)) * 1_000;
const list = (text: string): string[] => text.split(',').filter((part) => part !== '');
const workloads = list(asked.workloads) as Workload[];
const factors = list(asked.factors).map(Number);
const clients = list(asked.clients) as ClientKind[];
const arms = list(asked.arms) as Arm[];

const WARM_UP_MS = 1_000;
/** Enough to keep every workload busy, few enough for none to wait long. */
const CAPACITY_CONNECTIONS = 20;
const HELLO_CONNECTIONS = 64;

async function serving<T>(arm: Arm, use: (port: number, server: Child) => Promise<T>): Promise<T> {
  const server = new Child(new URL('./app-child.ts', import.meta.url), [arm, asked.limit]);
  try {
    const { port } = await server.ask<{ port: number }>();
    return await use(port, server);
  } finally {
    await server.close();
  }
}

function closed(arm: Arm, workload: Workload, connections: number): Promise<ClosedLoopResult> {
  return serving(arm, (port) =>
    closedLoopFromChild({
      ...requestFor(workload),
      port,
      connections,
      warmUpMs: WARM_UP_MS,
      durationMs,
    }),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function ms(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0).padStart(5);
}

function line(
  result: LoadResult,
  { dispatch, cpuSeconds, uptimeSeconds }: Reading,
  capacity: number,
): string {
  const perSecond = (count: number): string => (count / result.seconds).toFixed(0).padStart(5);
  const through = dispatch.queued + dispatch.atOnce;
  return [
    `in time${perSecond(result.inTime)}/s (${(result.inTime / result.seconds / capacity).toFixed(2)} C)`,
    `late${perSecond(result.late)}`,
    `refused${perSecond(result.refused)}`,
    `errors${perSecond(result.errors)}`,
    `answers${ms(result.answers.p50)}${ms(result.answers.p99)} ms`,
    `refusals${ms(result.refusals.p50)}${ms(result.refusals.p99)} ms`,
    `queued ${through === 0 ? '   –' : `${((100 * dispatch.queued) / through).toFixed(0).padStart(3)}%`}`,
    `cpu ${(cpuSeconds / uptimeSeconds).toFixed(2)}`,
    `client lag${ms(result.sendingLag.p99)} ms`,
  ].join('  ');
}

console.log(
  `node ${process.version}, fixed limit ${asked.limit}, deadline 500 ms, ${durationMs / 1_000} s a row`,
);
for (const workload of workloads) {
  const { perSecond: capacity, answers } = await closed('none', workload, CAPACITY_CONNECTIONS);
  console.log(
    `\n${workload}: capacity ${capacity.toFixed(0)}/s (bare, closed loop, p99 ${answers.p99.toFixed(0)} ms)`,
  );
  for (const factor of factors) {
    for (const client of clients) {
      for (const arm of arms) {
        const row = await serving(arm, async (port, server) => {
          const result = await loadFromChild({
            ...requestFor(workload),
            port,
            client,
            rate: factor * capacity,
            warmUpMs: WARM_UP_MS,
            durationMs,
          });
          return line(result, await server.ask<Reading>({}), capacity);
        });
        console.log(`  ${factor}x  ${client.padEnd(8)} ${arm.padEnd(21)} ${row}`);
      }
    }
  }
}

const rounds = Number(asked.hello);
if (rounds > 0) {
  const bare: number[] = [];
  const limited: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push((await closed('none', 'hello', HELLO_CONNECTIONS)).perSecond);
    limited.push((await closed('limit', 'hello', HELLO_CONNECTIONS)).perSecond);
  }
  console.log(
    `\nhello, ${HELLO_CONNECTIONS} closed loops, medians of ${rounds} interleaved rounds: bare ${median(bare).toFixed(0)}/s, limit ${median(limited).toFixed(0)}/s`,
  );
}
