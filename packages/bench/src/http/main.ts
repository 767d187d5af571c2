// npm run -s bench:http: the limits on real sockets, under real overload, beside the bare server and the peers.
import { CommandLine } from '../command-line.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import { ARMS, type Arm, bareOf } from './arms.js';
import { pinChildren } from './child.js';
import { IDEAL_PER_SECOND, WORKLOADS, type Workload } from './handlers.js';
import { capacityMark, type Figures, type Mark, marksOf, type Row, sameLoad } from './judge.js';
import { DEADLINE_MS, runLab } from './lab.js';
import type { ClientKind } from './load.js';
import { groupsOf, isLight, planOf } from './plan.js';

const command =
  new CommandLine(`npm run -s bench:http -- [options]     real servers under real overload; exits 1 if a mark is not held
  --quick              three workloads, the main arms, one round: about four minutes
  --rounds N           rounds that the medians are taken over (default: 3; quick: 1)
  --seconds N          how long each load is measured (default: 3, quick: 2)
  --workloads a,b      of ${WORKLOADS.join(', ')}
  --arms a,b           of ${Object.keys(ARMS).join(', ')}
  --factors a,b        loads, as multiples of capacity
  --clients a,b        of patient, hangUp, oneShot
  --json FILE          figures as JSON; beside it, with the ending .txt, what was printed
  --pin                servers and clients get a core of their own each and the highest priority (Linux)
`);
const PEERS = ['toobusy-js', 'overload-protection', '@fastify/under-pressure'];
const CLIENTS: readonly ClientKind[] = ['patient', 'hangUp', 'oneShot'];

const { values: asked } = command.read({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    workloads: { type: 'string' },
    arms: { type: 'string' },
    factors: { type: 'string' },
    clients: { type: 'string' },
    json: { type: 'string' },
    pin: { type: 'boolean', default: false },
  },
});
if (asked.pin) pinChildren();
const lines: string[] = [];
function say(line: string): void {
  lines.push(line);
  console.log(line);
}

function listOf<T extends string>(
  name: 'workloads' | 'arms' | 'clients',
  known: readonly T[],
): readonly T[] | undefined {
  const text = asked[name];
  return text === undefined ? undefined : command.listOf(name, text, known);
}

const lives = planOf({
  quick: asked.quick,
  workloads: listOf<Workload>('workloads', WORKLOADS),
  arms: listOf<Arm>('arms', Object.keys(ARMS) as Arm[]),
  factors: asked.factors?.split(',').map((part) => command.number('factors', part, 0.1, 20)),
  clients: listOf<ClientKind>('clients', CLIENTS),
});
const rounds = command.whole('rounds', asked.rounds ?? (asked.quick ? '1' : '3'), 1, 100);
const seconds = command.number('seconds', asked.seconds ?? (asked.quick ? '2' : '3'), 0.5, 600);
const startedMs = Date.now();
const provenance = provenanceOf({
  command: 'npm run -s bench:http --',
  sources: ['packages/core/src', 'packages/node-http/src', 'packages/bench/src/http'],
  packages: ['express', 'koa', 'fastify', '@nestjs/core', ...PEERS],
});
for (const line of provenanceLines(provenance)) say(line);
say(
  `deadline ${DEADLINE_MS} ms, ${seconds} s a load, medians of ${rounds} interleaved ${rounds === 1 ? 'round' : 'rounds'}; goodput is a share of capacity, the others of what was offered\n`,
);

const perRound = groupsOf(lives).flatMap(({ light, lives: each }) => [
  ...light.flatMap(({ arms }) => arms),
  ...each.flatMap(({ loads }) => loads.filter((load) => !isLight(load))),
]).length;
const total = perRound * rounds;
let done = 0;
const result = await runLab(lives, {
  rounds,
  seconds,
  onRun(round, row, figures) {
    done++;
    process.stderr.write(`${done}/${total} round ${round + 1} ${describe(row)} ${show(figures)}\n`);
  },
});

let short = 0;
const judged: { row: Row; marks: Mark[] }[] = [];
for (const { workload, arm, perSecond, rounds: each } of result.capacities) {
  const mark = capacityMark(workload, perSecond);
  const known = Number.isFinite(IDEAL_PER_SECOND[workload]);
  // that the bare server comes near to what its handler allows says that the machine was free
  say(
    `${known ? verdict([mark]) : '     '} ${workload.padEnd(7)} capacity of ${ARMS[arm]}: ${perSecond.toFixed(0)}/s` +
      (known
        ? `, ${mark.value.toFixed(2)} of ${IDEAL_PER_SECOND[workload]}/s (rounds: ${each.map((one) => one.toFixed(0)).join(', ')})`
        : ''),
  );
  if (known && !mark.ok) short++;
}
for (const { arm, client, cpuUs } of result.refusals) {
  const under = result.capacities.find(
    (each) => each.workload === 'cpu' && each.arm === bareOf(arm),
  );
  // what a limiter that costs nothing could reach, if it knew the capacity
  const bounds =
    under === undefined
      ? []
      : [3, 6].map((factor) => {
          const bound = boundOf(factor, cpuUs, under.perSecond);
          return `; ${factor}x before cpu: at most ${bound.toFixed(2)} of capacity`;
        });
  say(
    `      refusal to ${client} by ${ARMS[arm]}: ${cpuUs.toFixed(0)} us of CPU${bounds.join('')}`,
  );
}
for (const row of result.rows) {
  const marks = marksOf(row, result.rows);
  judged.push({ row, marks });
  if (marks.some(({ ok }) => !ok)) short++;
  const missed = marks
    .filter(({ ok }) => !ok)
    .map((mark) => markText(mark) + besideOracle(mark, row));
  say(
    `${marks.length === 0 ? '     ' : verdict(marks)} ${describe(row)} ${show(row.median)}${missed.length > 0 ? `   ! ${missed.join(', ')}` : ''}`,
  );
}
const marked = judged.filter(({ marks }) => marks.length > 0).length + result.capacities.length;
say(
  `\n${marked - short} of ${marked} hold; ${((Date.now() - startedMs) / 60_000).toFixed(1)} minutes`,
);
if (asked.json !== undefined) {
  const { capacities, refusals } = result;
  const settings = { rounds, seconds, deadlineMs: DEADLINE_MS };
  const figures = { arms: ARMS, capacities, refusals, rows: judged };
  saveReport(asked.json, { ...provenance, ...settings, ...figures }, lines);
}
process.exitCode = short > 0 ? 1 : 0;

/** Share of capacity that is left for answers when all the others are refused at this cost. */
function boundOf(factor: number, refusalUs: number, perSecond: number): number {
  const answerUs = 1e6 / perSecond;
  return (answerUs - factor * refusalUs) / (answerUs - refusalUs);
}

function verdict(marks: readonly Mark[]): string {
  return marks.every(({ ok }) => ok) ? 'ok   ' : 'SHORT';
}

function describe({ workload, factor, client, arm }: Omit<Row, 'rounds' | 'median'>): string {
  return `${workload.padEnd(7)} ${`${factor}x`.padEnd(5)} ${client.padEnd(8)} ${arm.padEnd(20)}`;
}

function show(figures: Figures): string {
  return [
    `goodput ${figures.goodput.toFixed(2)}`,
    `late ${percent(figures.late)}`,
    `refused ${percent(figures.refused)}`,
    `errors ${percent(figures.errors)}`,
    `answers ${ms(figures.p50Ms)} ${ms(figures.p99Ms)} ms`,
    `refusals ${ms(figures.refusalP50Ms)} ${ms(figures.refusalP99Ms)} ms`,
    `lag ${ms(figures.lagP99Ms)} ms`,
  ].join('  ');
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1).padStart(5)} %`;
}

function ms(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0).padStart(4);
}

/** What the least that works reaches under the same load: nobody can be held to more. */
function besideOracle({ what }: Mark, row: Row): string {
  const oracle = sameLoad(row, result.rows).find(({ arm }) => arm === 'oracle');
  return what === 'goodput' && oracle !== undefined
    ? ` (oracle ${oracle.median.goodput.toPrecision(3)})`
    : '';
}

function markText({ what, value, bound, atLeast }: Mark): string {
  return `${what} ${value.toPrecision(3)}, must be ${atLeast ? '≥' : '≤'} ${bound.toPrecision(3)}`;
}
