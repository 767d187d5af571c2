import type { Expectation, Scenario } from './scenario.js';
import type { RunFigures, WindowFigures } from './simulate.js';

/** A window's figures over several seeds: medians, and whether what must hold does. */
export interface Verdict {
  readonly window: number;
  readonly fromS: number;
  readonly toS: number;
  readonly goodput: number;
  readonly refused: number;
  readonly refusedOf: WindowFigures['refusedOf'];
  readonly late: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly limit: number;
  readonly limitDrift: number;
  readonly marks: readonly Mark[];
  readonly ok: boolean;
}

/** One thing that must hold. */
export interface Mark {
  readonly what: string;
  readonly value: number;
  readonly bound: number;
  readonly atLeast: boolean;
  readonly ok: boolean;
}

/** One verdict per window that something is expected of. `settledOnly` leaves out those that begin in the first ten seconds. */
export function judge(
  scenario: Scenario,
  runs: readonly RunFigures[],
  settledOnly = false,
): Verdict[] {
  return scenario.measureS.flatMap(([fromS, toS], window) => {
    const expected = scenario.expect.filter((one) => one.measure === window);
    if (expected.length === 0 || (settledOnly && fromS < 10)) return [];
    const seen = runs.map((run) => run.windows[window] as WindowFigures);
    const of = (read: (figures: WindowFigures) => number): number => median(seen.map(read));
    const marks = expected.flatMap((one) => marksOf(one, of));
    const classes = Object.keys(seen[0]?.refusedOf ?? {}) as (keyof WindowFigures['refusedOf'])[];
    return [
      {
        window,
        fromS,
        toS,
        goodput: of((w) => w.goodput),
        refused: of((w) => w.refused),
        refusedOf: Object.fromEntries(
          classes.map((name) => [name, of((w) => w.refusedOf[name] ?? 0)]),
        ),
        late: of((w) => w.late),
        p50Ms: of((w) => w.p50Ms),
        p99Ms: of((w) => w.p99Ms),
        limit: of((w) => w.meanLimit),
        limitDrift: of((w) => w.limitDrift),
        marks,
        ok: marks.every((mark) => mark.ok),
      },
    ];
  });
}

function marksOf(
  expected: Expectation,
  of: (read: (figures: WindowFigures) => number) => number,
): Mark[] {
  const marks: Mark[] = [];
  // written so that NaN fails
  const most = (what: string, value: number, bound: number | undefined): void => {
    if (bound !== undefined) marks.push({ what, value, bound, atLeast: false, ok: value <= bound });
  };
  const { class: name, goodputMin } = expected;
  if (name === undefined)
    most(
      'refused',
      of((w) => w.refused),
      expected.refusedMax,
    );
  else
    most(
      `${name} refused`,
      of((w) => w.refusedOf[name] ?? Number.NaN),
      expected.refusedMax,
    );
  if (goodputMin !== undefined) {
    const value = of((w) => w.goodput);
    marks.push({
      what: 'goodput',
      value,
      bound: goodputMin,
      atLeast: true,
      ok: value >= goodputMin,
    });
  }
  most(
    'p99 ms',
    of((w) => w.p99Ms),
    expected.p99Max,
  );
  most(
    'drift',
    of((w) => w.limitDrift),
    expected.limitDriftMax,
  );
  return marks;
}

/** The middle one; of an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] as number) + (sorted[Math.floor(middle)] as number)) / 2;
}
