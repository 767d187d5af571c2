import { basename } from 'node:path';
import { ARMS, type ArmName, type ArmSetting, CONTROLS, START } from './arms.js';
import { judge, type Verdict } from './judge.js';
import { meanOfSmaller, OverTime } from './over-time.js';
import type { Pool } from './pool.js';
import type { Scenario } from './scenario.js';
import type { RunFigures } from './simulate.js';

export interface LabFile {
  readonly file: string;
  readonly scenario: Scenario;
}

/** One file under one arm. */
export interface Row {
  readonly file: string;
  readonly row: number;
  readonly arm: ArmName;
  /** The start value of `auto`, if it is not the usual one. */
  readonly start?: number;
  /** The limit that was found, for `best fixed`. */
  readonly fixed?: number;
  readonly seeds: number;
  readonly verdicts: readonly Verdict[];
}

/** Start values that settled windows must hold for. */
export const STARTS = [1, 2, 5, 20, 50, 500] as const;
/** So long a run is not repeated. */
const LONG_S = 3000;
/** Rows in which a limit that stays at the start value must be seen to fail. */
const FROZEN_FAILS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 18];

/** Runs files under arms and judges them. */
export class Lab {
  readonly #pool: Pool;
  readonly #onRow: (row: Row) => void;
  readonly #firstSeed: number;
  #events = 0;

  constructor(pool: Pool, onRow: (row: Row) => void, firstSeed: number) {
    this.#pool = pool;
    this.#onRow = onRow;
    this.#firstSeed = firstSeed;
  }

  /** Arrivals and completions simulated so far. */
  get events(): number {
    return this.#events;
  }

  async table(files: readonly LabFile[], arms: readonly ArmName[], seeds: number): Promise<Row[]> {
    const rows: Promise<Row>[] = [];
    for (const file of files) {
      for (const arm of arms) rows.push(this.#row(file, { arm }, seeds, false));
    }
    return this.#inOrder(rows);
  }

  /** `auto` with other limits at the start, one seed; only windows that begin after ten seconds. */
  async starts(files: readonly LabFile[], starts: readonly number[]): Promise<Row[]> {
    const rows: Promise<Row>[] = [];
    for (const file of files) {
      for (const start of starts) rows.push(this.#row(file, { arm: 'auto', start }, 1, true));
    }
    return this.#inOrder(rows);
  }

  /** What is wrong with the marks themselves: a control that passed where it must fail. One seed. */
  async controls(files: readonly LabFile[]): Promise<string[]> {
    const rows: Promise<Row>[] = [];
    for (const file of files) {
      for (const arm of CONTROLS) rows.push(this.#row(file, { arm }, 1, false));
    }
    const found = await Promise.all(rows);
    const wrong: string[] = [];
    const passes = (row: Row | undefined): boolean =>
      row?.verdicts.every((verdict) => verdict.ok) ?? true;
    for (const { file, scenario } of files) {
      const of = (arm: ArmName): Row | undefined =>
        found.find((row) => row.arm === arm && row.file === nameOf(file));
      if (passes(of('always refuse'))) wrong.push(`${nameOf(file)}: always refuse passes`);
      if (isOverload(scenario) && passes(of('always admit')))
        wrong.push(`${nameOf(file)}: always admit passes`);
    }
    for (const number of FROZEN_FAILS) {
      const frozen = found.filter((row) => row.row === number && row.arm === 'frozen');
      if (frozen.length > 0 && frozen.every(passes))
        wrong.push(`row ${number}: a limit frozen at ${START} passes every file`);
    }
    return wrong;
  }

  async #row(
    { file, scenario }: LabFile,
    setting: ArmSetting,
    seeds: number,
    settledOnly: boolean,
  ): Promise<Row> {
    const fixed =
      setting.arm === 'best fixed' ? await this.#pool.run({ kind: 'tune', scenario }) : undefined;
    const count = scenario.durationS >= LONG_S ? 1 : seeds;
    const runs = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        this.#pool.run(
          {
            kind: 'run',
            scenario,
            setting: fixed === undefined ? setting : { ...setting, fixed },
            seed: this.#firstSeed + i,
          },
          fixed !== undefined,
        ),
      ),
    );
    this.#events += runs.reduce((sum: number, run: RunFigures) => sum + run.events, 0);
    return {
      file: nameOf(file),
      row: scenario.row,
      arm: setting.arm,
      ...(setting.start === undefined ? {} : { start: setting.start }),
      ...(fixed === undefined ? {} : { fixed }),
      seeds: count,
      verdicts: judge(scenario, runs, settledOnly),
    };
  }

  async #inOrder(rows: readonly Promise<Row>[]): Promise<Row[]> {
    const done: Row[] = [];
    for (const row of rows) {
      done.push(await row);
      this.#onRow(done.at(-1) as Row);
    }
    return done;
  }
}

export function nameOf(file: string): string {
  return basename(file, '.json');
}

/** More is offered than the plant can do, in one of the measured windows or on the way to one. */
function isOverload({ rate, capacity, measureS, durationS }: Scenario): boolean {
  const offered = new OverTime(rate);
  const can = new OverTime(capacity);
  const step = durationS / 1000;
  let worst = 0;
  for (let s = 0; s < durationS && s < Math.max(...measureS.map(([, to]) => to)); s += step) {
    worst = Math.max(worst, offered.at(s) / Math.max(1e-9, can.at(s)));
  }
  return worst > 1.1 && meanOfSmaller(offered, can, 0, durationS) > 0;
}

/** The arm by its name, in any case. */
export function armOf(name: string): ArmName {
  const known = [...ARMS, ...CONTROLS];
  const arm = known.find(
    (one) => one === name.toLowerCase() || one.replace(' ', '-') === name.toLowerCase(),
  );
  if (arm === undefined) throw new Error(`no arm ${name}; known: ${known.join(', ')}, all`);
  return arm;
}
