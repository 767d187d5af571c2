/**
 * What our parts cost, beside what people use today: `npm run bench:micro -- [--quick] [--json FILE]`.
 *
 * Every figure is processor time; what must hold are ratios of figures that stand next to each other in one round.
 * `docs/bench-micro.md` says how to read it. Exits with 1 if a row is short.
 */
import { CommandLine } from '../command-line.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import { BREAKER, type CallCosts, GARBAGE, GUARD, measureCalls, RATE } from './call-arms.js';
import { CONNECTIONS, HTTP_ARMS, measureHttp } from './http-arms.js';

interface Row {
  readonly name: string;
  readonly median: number;
  /** Of the rounds. */
  readonly least: number;
  readonly most: number;
  /** `null` for a row that only informs. */
  readonly mustHold: number | null;
}

const { values } =
  new CommandLine(`npm run -s bench:micro -- [options]   what a call and a request cost, beside the peers; exits 1 if a mark is not held
  --quick       three rounds instead of seven
  --json FILE   the report; beside it, with the ending .txt, what was printed
`).read({
    options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } },
  });
const rounds = values.quick ? 3 : 7;
/** What V8 puts in line differs from process to process: of a number handed on it makes an object, or none. */
const GARBAGE_ROUNDS = values.quick ? 5 : 31;
const rows: Row[] = [];

const guard = await measureCalls(GUARD, rounds);
const overBulkhead = (arm: keyof typeof guard) => ratios(ns(guard[arm]), ns(guard.bulkhead));
row('guard auto, tryAcquire + release ÷ bulkhead', overBulkhead('guard auto'), 1);
row('  as an adapter asks ÷ bulkhead', overBulkhead('guard auto, with options'), null);
row('  around an async call ÷ bulkhead', overBulkhead('guard auto, around'), null);
row('  execute ÷ bulkhead', overBulkhead('guard auto, execute'), null);
row('  the async call alone ÷ bulkhead', overBulkhead('bare async call'), null);
row('  two readings of the clock alone ÷ bulkhead', overBulkhead('clock').map(twice), null);
const garbageOf = await measureCalls(GARBAGE, GARBAGE_ROUNDS);
const permitBytes = pick(garbageOf['guard auto'], 'permitBytes').map(Math.round);
const garbage = pick(garbageOf['guard auto'], 'bytes').map(Math.round);
row('  a permit and its time of arrival, bytes', permitBytes, null);
// the time at which it is released, as a number of its own: beyond 36 minutes of uptime it is no small integer
row('  garbage of a call beyond its permit, bytes', over(garbage, permitBytes), 16);

const breaker = await measureCalls(BREAKER, rounds);
const COCKATIEL = ['cockatiel consecutive', 'cockatiel count', 'cockatiel sampling'] as const;
row(
  'breaker ÷ the quickest of cockatiel’s',
  ratios(ns(breaker.elimit), cheapest(COCKATIEL.map((arm) => ns(breaker[arm])))),
  1,
);
row('  ÷ opossum', ratios(ns(breaker.elimit), ns(breaker.opossum)), null);

const rate = await measureCalls(RATE, 3);
const peers = [
  rate['rate-limiter-flexible'],
  rate['@nestjs/throttler'],
  rate['express-rate-limit'],
];
const bestOf = (key: string) => cheapest(peers.map((costs) => pick(costs, key)));
const overStore = (costs: readonly CallCosts[], key: string) =>
  ratios(pick(costs, key), pick(rate['express-rate-limit, its store'], key));
for (const [title, key] of [
  ['token bucket by key', 'ns'],
  ['  200 000 keys', 'nsManyKeys'],
] as const) {
  row(`${title} ÷ the best peer`, ratios(pick(rate.elimit, key), bestOf(key)), 0.5);
  row('    ÷ express-rate-limit’s store, which only counts', overStore(rate.elimit, key), null);
  row('    look-up and clock alone ÷ that', overStore(rate['look-up and clock'], key), null);
}
row('  keys of many hits ÷ new ones', pick(rate.elimit, 'manyHits'), 1.25);
row('    the same of @nestjs/throttler', pick(rate['@nestjs/throttler'], 'manyHits'), null);
const inKeys = (costs: readonly CallCosts[]) => ratios(pick(costs, 'nsManyKeys'), ns(costs));
row('  with 200 000 keys ÷ with a hundred', inKeys(rate.elimit), null);
row('    the same of look-up and clock alone', inKeys(rate['look-up and clock']), null);
row('  bytes per key', pick(rate.elimit, 'bytesPerKey'), 200);

// many short rounds: what else the machine does comes in spells, and a ratio is taken within a round
const http = await measureHttp(4 * rounds, 400);
for (const connections of CONNECTIONS) {
  const us = http.cpuUs[connections];
  if (us === undefined) continue;
  const { bare } = us;
  const title = connections === 1 ? '1 connection' : `${connections} connections`;
  row(
    `Express, ${title}: limit('auto') over bare ÷ express-rate-limit over bare`,
    ratios(over(us["limit('auto')"], bare), over(us['express-rate-limit'], bare)),
    0.25,
  );
  row('  limiting alone, µs', over(us["limit('auto')"], us['limit, all skipped']), null);
  row("  limit('auto') ÷ bare", ratios(us["limit('auto')"], bare), null);
  row('  express-rate-limit ÷ bare', ratios(us['express-rate-limit'], bare), null);
  row('  refusal by limit ÷ a bare answer', ratios(us['refused by limit'], bare), 0.6);
  row(
    '  refusal by protect(server) ÷ a bare answer',
    ratios(us['refused by protect(server)'], bare),
    0.4,
  );
}
for (const { requests, bytes } of http.grown) {
  row(`heap grown by limit('auto') over ${requests} requests, bytes each`, [bytes], 16);
}

const judged = rows.filter(({ mustHold }) => mustHold !== null);
const short = judged.filter((each) => !holds(each));
const provenance = provenanceOf({
  command: 'npm run bench:micro --',
  sources: ['core', 'node-http', 'express', 'bench/src/micro'].map((path) => `packages/${path}`),
  packages: [
    'cockatiel',
    'opossum',
    'express',
    'express-rate-limit',
    'rate-limiter-flexible',
    '@nestjs/throttler',
  ],
});
const lines = [
  ...provenanceLines(provenance),
  '',
  `${''.padEnd(76)}  median  least   most  must hold`,
  ...rows.map(line),
  '',
  ...absolute('ns per call', {
    ...medians(guard),
    ...medians(breaker, 'breaker: '),
    ...medians(rate, 'rate: '),
  }),
  ...CONNECTIONS.flatMap((connections) =>
    absolute(
      `µs per request, ${connections} connection(s)`,
      Object.fromEntries(
        HTTP_ARMS.map((arm) => [arm, median(http.cpuUs[connections]?.[arm] ?? [])]),
      ),
    ),
  ),
  `${short.length === 0 ? 'ok' : 'SHORT'}: ${judged.length - short.length} rows hold, ${short.length} do not`,
];
console.log(lines.join('\n'));
if (values.json !== undefined) {
  saveReport(values.json, { ...provenance, rounds, rows, guard, breaker, rate, http }, lines);
}
process.exitCode = short.length > 0 ? 1 : 0;

/** Written so that a figure that could not be taken is short, too. */
function holds({ median: figure, mustHold }: Row): boolean {
  return mustHold === null || figure <= mustHold;
}

function line(each: Row): string {
  const { name, least, most, mustHold } = each;
  const figures = [each.median, least, most].map((figure) => shown(figure).padStart(7)).join('');
  const verdict =
    mustHold === null ? '' : `≤ ${mustHold}`.padEnd(7) + (holds(each) ? 'ok' : 'SHORT');
  return `${name.padEnd(76)} ${figures}  ${verdict}`.trimEnd();
}

function row(name: string, figures: readonly number[], mustHold: number | null): void {
  rows.push({
    name,
    median: median(figures),
    least: Math.min(...figures),
    most: Math.max(...figures),
    mustHold,
  });
}

function pick(costs: readonly CallCosts[], key: string): number[] {
  return costs.map((each) => each[key] ?? Number.NaN);
}

function ns(costs: readonly CallCosts[]): number[] {
  return pick(costs, 'ns');
}

function ratios(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours.map((each, i) => each / (theirs[i] as number));
}

function twice(figure: number): number {
  return 2 * figure;
}

function over(figures: readonly number[], bare: readonly number[]): number[] {
  return figures.map((each, i) => each - (bare[i] as number));
}

/** The arm with the least median: the same one in all rounds. */
function cheapest(arms: readonly (readonly number[])[]): readonly number[] {
  return arms.reduce((best, arm) => (median(arm) < median(best) ? arm : best));
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function medians(
  costs: Readonly<Record<string, readonly CallCosts[]>>,
  of = '',
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(costs).map(([arm, each]) => [of + arm, median(ns(each))]),
  );
}

function absolute(title: string, figures: Readonly<Record<string, number>>): string[] {
  const each = Object.entries(figures).map(
    ([name, figure]) => `  ${name.padEnd(34)}${figure.toFixed(0).padStart(8)}`,
  );
  return [`${title} (of this machine and this run)`, ...each, ''];
}

function shown(figure: number): string {
  return Math.abs(figure) < 10 ? figure.toFixed(2) : figure.toFixed(0);
}
