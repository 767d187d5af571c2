// npm run -s lab:breaker: our breaker against the real opossum and cockatiel, fed the same calls in virtual time.
import { CommandLine } from '../command-line.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import { ARMS } from './arms.js';
import { type Scenario, scenarios } from './scenarios.js';
import { type Figures, mean, simulate } from './simulate.js';
import { variations } from './variations.js';

const command =
  new CommandLine(`npm run -s lab:breaker -- [NAME…] [options]   our breaker beside opossum and cockatiel, in virtual time
  NAME          rows with this in their name (default: all)
  --varied      the rows of variations.ts instead
  --seeds N     runs of each row (default: 5)
  --from SEED   the first seed (default: 1)
  --json FILE   the report; beside it, with the ending .txt, what was printed
Exits 1 if a row is worse than a peer with its documented settings.
`);
const { values, positionals } = command.read({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '5' },
    from: { type: 'string', default: '1' },
    json: { type: 'string' },
    varied: { type: 'boolean', default: false },
  },
});
const seeds = command.whole('seeds', values.seeds, 1, 1000);
const firstSeed = command.whole('from', values.from, 1, 1e6);
const rowsOf = values.varied ? variations : scenarios;
const chosen = rowsOf(1)
  .map(({ name }) => name)
  .filter((name) => positionals.length === 0 || positionals.some((part) => name.includes(part)));
if (chosen.length === 0) command.refuse(`no row has ${positionals.join(' or ')} in its name`);
const rowOf = (name: string, seed: number): Scenario =>
  rowsOf(seed).find((each) => each.name === name) as Scenario;

const KEYS = ['failed', 'goodIsolated', 'detectMs', 'returnMs'] as const;
/** Peers as documented: the yardstick. The tuned ones are shown beside. */
const YARDSTICKS = ['opossum', 'cockatiel'];

interface Row {
  readonly name: string;
  readonly about: string;
  readonly figures: Readonly<Record<string, Figures>>;
  /** Against each peer: the figures in which ours is better, and in which it is worse. */
  readonly against: Readonly<Record<string, { better: string[]; worse: string[] }>>;
}

const provenance = provenanceOf({
  command: 'npm run -s lab:breaker --',
  sources: [
    'packages/core/src/breaker',
    'packages/core/src/admission/circuit-breaker.ts',
    'packages/bench/src/breaker',
  ],
  packages: YARDSTICKS,
});
const printed: string[] = [];
for (const line of provenanceLines(provenance)) say(line);

const rows: Row[] = [];
for (const name of chosen) {
  const figures: Record<string, Figures> = {};
  for (const arm of ARMS) {
    const runs: Figures[] = [];
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++)
      runs.push(await simulate(rowOf(name, seed), arm, seed));
    figures[arm.name] = {
      calls: sum(runs.map(({ calls }) => calls)),
      failed: sum(runs.map(({ failed }) => failed)),
      goodIsolated: sum(runs.map(({ goodIsolated }) => goodIsolated)),
      detectMs: mean(runs.flatMap(({ detectMs }) => detectMs ?? [])),
      returnMs: mean(runs.flatMap(({ returnMs }) => returnMs ?? [])),
    };
  }
  const row = { name, about: rowOf(name, 1).about, figures, against: compare(figures) };
  rows.push(row);
  print(row);
}

const behind = rows.filter((row) =>
  YARDSTICKS.some((peer) => (row.against[peer]?.worse.length ?? 0) > 0),
);
say(
  `${rows.length} rows, ${seeds} seeds each from ${firstSeed} on; ${rows.length - behind.length} with no figure worse than the peers as documented`,
);
for (const row of behind) {
  for (const peer of YARDSTICKS) {
    for (const figure of row.against[peer]?.worse ?? [])
      say(`  worse: ${row.name}, ${figure}, than ${peer}`);
  }
}
if (values.json !== undefined) {
  const arms = Object.fromEntries(ARMS.map(({ name, settings }) => [name, settings]));
  saveReport(values.json, { ...provenance, seeds, firstSeed, arms, rows }, printed);
}
process.exitCode = behind.length > 0 ? 1 : 0;

function compare(figures: Record<string, Figures>): Row['against'] {
  const ours = figures.elimit as Figures;
  const against: Record<string, { better: string[]; worse: string[] }> = {};
  for (const [peer, theirs] of Object.entries(figures)) {
    if (peer.startsWith('elimit')) continue;
    const gains = KEYS.map((key) => ({ key, gain: gainOf(key, ours, theirs) }));
    against[peer] = {
      better: gains.filter(({ gain }) => gain > 0).map(({ key }) => key),
      worse: gains.filter(({ gain }) => gain < 0).map(({ key }) => key),
    };
  }
  return against;
}

/** Above 0 where ours is better. A tenth of a percent of the calls, and a twentieth of a second, are no difference. */
function gainOf(key: (typeof KEYS)[number], ours: Figures, theirs: Figures): number {
  const [a, b] = [ours[key], theirs[key]];
  if (a === null || b === null) return 0;
  const same = key === 'failed' ? ours.calls / 1000 : key === 'goodIsolated' ? 0 : 50;
  return Math.abs(b - a) <= same ? 0 : b - a;
}

function print({ name, about, figures, against }: Row): void {
  say(`${name}: ${about}`);
  for (const [arm, { calls, failed, goodIsolated, detectMs, returnMs }] of Object.entries(
    figures,
  )) {
    const { better = [], worse = [] } = against[arm] ?? {};
    const verdict = arm.startsWith('elimit')
      ? ''
      : ` ours better in ${list(better)}, worse in ${list(worse)}`;
    say(
      `  ${arm.padEnd(16)} failed ${String(failed).padStart(6)} of ${calls}, good nodes isolated ${String(goodIsolated).padStart(3)}, ` +
        `detect ${shown(detectMs)}, return ${shown(returnMs)}${verdict}`,
    );
  }
}

/** Prints a line, and keeps it for the file. */
function say(line: string): void {
  printed.push(line);
  console.log(line);
}

function list(keys: readonly string[]): string {
  return keys.length === 0 ? 'none' : keys.join(' ');
}

function shown(ms: number | null): string {
  return (ms === null ? '-' : `${ms.toFixed(0)} ms`).padStart(9);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
