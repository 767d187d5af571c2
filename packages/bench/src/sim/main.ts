// The simulated lab. Without files: the whole matrix. `docs/lab.md` says how to read it.
import { availableParallelism } from 'node:os';
import { CommandLine } from '../command-line.js';
import { provenanceLines, provenanceOf, saveReport } from '../report.js';
import { ARMS, type ArmName } from './arms.js';
import { drawCurves } from './curves.js';
import { handedFiles } from './handed.js';
import { armOf, Lab, type LabFile, nameOf, type Row, STARTS } from './lab.js';
import { Pool } from './pool.js';
import { linesOf, shortLinesOf, tableOf } from './report.js';
import { readScenario } from './scenario.js';
import { variationsOf } from './vary.js';

const command =
  new CommandLine(`npm run -s lab -- [FILE.json…] [options]   the simulated lab; exits 1 if auto is short
  without files: the whole matrix, every arm, the start values and the negative controls
  --arm NAME      ${ARMS.join(', ')} or all; auto if files are given
  --seeds N       seeds per window, of which the median is judged (5)
  --first-seed K  the seeds are K, K + 1, …; the start values have K alone (1)
  --starts        other limits at the start too, when files are given
  --vary N        each file N times with other numbers; of the handed files, those of less than fifteen minutes
  --seed S        what the numbers of --vary are drawn with (1)
  --json OUT      all figures; a text table beside it, in OUT with .txt
  --svg DIR       goodput, p99 and refusals against offered load, every arm
  --quick         the regression test of CI: auto on all but the longest files`);

/** Files of more than so many seconds are left out of the quick run. */
const QUICK_S = 500;
/** Files of more than so many seconds are not varied. */
const VARIED_S = 900;

async function main(): Promise<number> {
  const { values, positionals } = command.read({
    allowPositionals: true,
    options: {
      arm: { type: 'string', multiple: true },
      seeds: { type: 'string' },
      'first-seed': { type: 'string' },
      starts: { type: 'boolean' },
      vary: { type: 'string' },
      seed: { type: 'string' },
      json: { type: 'string' },
      svg: { type: 'string' },
      quick: { type: 'boolean' },
    },
  });
  const quick = values.quick === true;
  const seeds = command.whole('seeds', values.seeds ?? '5', 1, 1000);
  const firstSeed = command.whole('first-seed', values['first-seed'] ?? '1', 1, 1e9);
  const varies = values.vary !== undefined;
  const matrix = positionals.length === 0 && !varies;
  const given = filesOf(positionals, quick);
  const files = values.vary === undefined ? given : varied(given, values.vary, values.seed ?? '1');
  const named = values.arm?.flatMap((name) => (name === 'all' ? [...ARMS] : [armOf(name)]));
  const arms: readonly ArmName[] = named ?? (matrix && !quick ? ARMS : ['auto']);
  const started = Date.now();
  const pool = new Pool(Math.min(2, availableParallelism()));
  try {
    const lab = new Lab(pool, print, firstSeed);
    const rows = await lab.table(files, arms, seeds);
    const judgesAuto = arms.includes('auto');
    const withStarts = values.starts === true || (matrix && named === undefined);
    // one start value is enough for the quick run: far below what most services need
    const startRows = withStarts ? await lab.starts(files, quick ? [2] : STARTS) : [];
    const wrong = matrix && named === undefined ? await lab.controls(files) : [];
    for (const line of wrong) console.log(`WRONG ${line}`);
    const short = [...rows, ...startRows].filter(
      (row) => row.arm === 'auto' && row.verdicts.some((one) => !one.ok),
    );
    if (varies) console.log(`\n${shortLinesOf(short).join('\n')}`);
    if (arms.length > 1) console.log(`\n${tableOf(rows, arms)}`);
    const windows = count(rows) + count(startRows);
    const summary = `auto: ${countShort(rows)} of ${count(rows)} windows short${withStarts ? `; from other start values ${countShort(startRows)} of ${count(startRows)}` : ''}${wrong.length > 0 ? `; ${wrong.length} controls wrong` : ''}`;
    const seconds = (Date.now() - started) / 1000;
    console.log(
      `\n${judgesAuto ? summary : `${windows} windows`}; ${(lab.events / 1e6).toFixed(1)} M events, ${seconds.toFixed(0)} s`,
    );
    if (values.svg !== undefined) await drawCurves(pool, values.svg, arms.length > 1 ? arms : ARMS);
    if (values.json !== undefined) save(values.json, rows, startRows, wrong, arms, summary);
    return short.length > 0 || wrong.length > 0 ? 1 : 0;
  } finally {
    pool.close();
  }
}

function filesOf(paths: readonly string[], quick: boolean): LabFile[] {
  const files = paths.length > 0 ? paths : handedFiles();
  const read = files.map((file) => ({ file, scenario: readScenario(file) }));
  return quick ? read.filter(({ scenario }) => scenario.durationS <= QUICK_S) : read;
}

function varied(files: readonly LabFile[], times: string, seed: string): LabFile[] {
  const count = command.whole('vary', times, 1, 1000);
  const drawnWith = command.whole('seed', seed, 1, 1e9);
  return files
    .filter(({ scenario }) => scenario.durationS <= VARIED_S)
    .flatMap(({ file, scenario }) =>
      variationsOf(scenario, count, drawnWith).map((one, i) => ({
        file: `${nameOf(file)}~${drawnWith}.${i}`,
        scenario: one,
      })),
    );
}

function print(row: Row): void {
  if (row.arm === 'auto' || row.verdicts.length > 0)
    for (const line of linesOf(row)) console.log(line);
}

const count = (rows: readonly Row[]): number =>
  rows.reduce((sum, row) => sum + (row.arm === 'auto' ? row.verdicts.length : 0), 0);
const countShort = (rows: readonly Row[]): number =>
  rows.reduce(
    (sum, row) => sum + (row.arm === 'auto' ? row.verdicts.filter((one) => !one.ok).length : 0),
    0,
  );

function save(
  path: string,
  rows: readonly Row[],
  starts: readonly Row[],
  wrong: readonly string[],
  arms: readonly string[],
  summary: string,
): void {
  const provenance = provenanceOf({
    command: 'npm run -s lab --',
    sources: ['packages/core/src/limiter', 'packages/core/src/sampling', 'packages/bench/src/sim'],
    packages: ['@elimit/core'],
  });
  const lines = [...rows, ...starts].filter((row) => row.arm === 'auto').flatMap(linesOf);
  const table = arms.length > 1 ? [tableOf(rows, arms), ''] : [];
  const controls = wrong.map((line) => `WRONG ${line}`);
  saveReport(path, { ...provenance, summary, rows, starts, controls: { wrong } }, [
    ...provenanceLines(provenance),
    '',
    summary,
    ...controls,
    '',
    ...table,
    ...lines,
  ]);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`lab: ${(error as Error).message}`);
  process.exitCode = 2;
}
