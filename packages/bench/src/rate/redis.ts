/**
 * One quota of 1000/s over two processes, each offering all of it: round trips to Redis, overshoot, cost of a call.
 * On the built packages, and a `redis-server` on the path:
 *
 *   npm run -s bench:rate-redis -- [--json FILE]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RedisServer } from '@elimit/testkit';
import { Redis } from 'ioredis';
import { CommandLine } from '../command-line.js';
import { holds, markLines, provenanceLines, provenanceOf, saveReport } from '../report.js';

const { values } =
  new CommandLine(`npm run -s bench:rate-redis -- [options]   one quota over two processes, beside the peers; exits 1 if a mark is not held
  --json FILE   the report; beside it, with the ending .txt, what was printed
`).read({ options: { json: { type: 'string' } } });
const provenance = provenanceOf({
  command: 'npm run -s bench:rate-redis --',
  sources: ['packages/core/src', 'packages/redis/src'],
  packages: ['ioredis', 'rate-limiter-flexible', 'rate-limit-redis'],
});
const ARMS = [
  'elimit',
  'elimit without leases',
  'rate-limiter-flexible',
  'rate-limit-redis',
] as const;
const [RATE, PER_SECOND, SECONDS, PROCESSES] = [1000, 1000, 5, 2];

interface Told {
  offered: number;
  granted: number;
  firstMs: number;
  lastMs: number;
  p50Us: number;
  p99Us: number;
  cpuUs: number;
}

interface Row {
  arm: string;
  offered: number;
  granted: number;
  /** Calls of a script that Redis counted, for each call that was offered. */
  roundTripsPerCall: number;
  /** Granted, as a ratio of burst + rate × time: what a bucket may grant. */
  grantedRatio: number;
  p50Us: number;
  p99Us: number;
  cpuUsPerCall: number;
}

const server = await RedisServer.start();
const client = new Redis(server.port);

const rows: Row[] = [];
for (const arm of ARMS) rows.push(await run(arm));
client.disconnect();
await server.stop();

const [ours, , ...peers] = rows as [Row, Row, ...Row[]];
const leastTrips = Math.min(...peers.map(({ roundTripsPerCall }) => roundTripsPerCall));
const marks = {
  'fewer round trips than the best peer': { ratio: leastTrips / ours.roundTripsPerCall, least: 20 },
  'granted ÷ (burst + rate × time)': { ratio: ours.grantedRatio, most: 1.1 },
};
const printed = [
  ...provenanceLines(provenance),
  '',
  `${''.padEnd(24)} trips/call  granted  of allowed   p50 us   p99 us  cpu us/call`,
  ...rows.map((row) => {
    const cells = [
      row.roundTripsPerCall.toFixed(4).padStart(10),
      `${row.granted}`.padStart(8),
      row.grantedRatio.toFixed(3).padStart(11),
      row.p50Us.toFixed(1).padStart(8),
      row.p99Us.toFixed(0).padStart(8),
      row.cpuUsPerCall.toFixed(0).padStart(12),
    ];
    return `${row.arm.padEnd(24)} ${cells.join(' ')}`;
  }),
  ...markLines(marks),
];
console.log(printed.join('\n'));
if (values.json !== undefined) saveReport(values.json, { ...provenance, rows, marks }, printed);
process.exitCode = Object.values(marks).every(holds) ? 0 : 1;

async function run(arm: string): Promise<Row> {
  await client.flushall();
  const script = fileURLToPath(new URL('./redis-arm.mjs', import.meta.url));
  const args = [server.port, RATE, PER_SECOND, SECONDS].map(String);
  const workers = Array.from({ length: PROCESSES }, () => {
    const child = spawn(process.execPath, [script, arm, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
  });
  for (const { lines } of workers) await lines.next();
  await client.config('RESETSTAT');
  for (const { child } of workers) go(child);
  const told: Told[] = [];
  for (const { lines } of workers)
    told.push(JSON.parse(String((await lines.next()).value)) as Told);
  const trips = await scriptCalls();
  const sum = (pick: (one: Told) => number): number =>
    told.reduce((all, one) => all + pick(one), 0);
  const most = (pick: (one: Told) => number): number => Math.max(...told.map(pick));
  const [offered, granted] = [sum((one) => one.offered), sum((one) => one.granted)];
  const spanMs = most((one) => one.lastMs) - Math.min(...told.map(({ firstMs }) => firstMs));
  return {
    arm,
    offered,
    granted,
    roundTripsPerCall: trips / offered,
    grantedRatio: granted / (RATE + (RATE * spanMs) / 1000),
    p50Us: most((one) => one.p50Us),
    p99Us: most((one) => one.p99Us),
    cpuUsPerCall: sum((one) => one.cpuUs) / PROCESSES,
  };
}

function go(child: ChildProcess): void {
  child.stdin?.write('go\n');
}

/** Scripts run since the counters were reset: one round trip each. */
async function scriptCalls(): Promise<number> {
  const stats = await client.info('commandstats');
  return [...stats.matchAll(/^cmdstat_(?:eval|evalsha):calls=(\d+)/gm)].reduce(
    (all, [, calls]) => all + Number(calls),
    0,
  );
}
