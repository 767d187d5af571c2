import { describe, expect, it } from '@jest/globals';
import type { Arm } from '../../src/http/arms.js';
import {
  capacityMark,
  type Figures,
  marksOf,
  medianOf,
  middleOf,
  type Row,
} from '../../src/http/judge.js';
import { JUDGED, planOf } from '../../src/http/plan.js';

const GOOD: Figures = {
  goodput: 0.95,
  inTime: 0.32,
  refused: 0.68,
  late: 0,
  errors: 0,
  p50Ms: 80,
  p99Ms: 120,
  refusalP50Ms: 3,
  refusalP99Ms: 12,
  lagP99Ms: 1,
};

function row(arm: Arm, factor: number, figures: Partial<Figures> = {}): Row {
  const all = { ...GOOD, ...figures };
  return { workload: 'cpu', arm, factor, client: 'hangUp', rounds: [all], median: all };
}

/** What is missed, by name. */
function missed(of: Row, ...others: Row[]): string[] {
  return marksOf(of, [of, ...others])
    .filter(({ ok }) => !ok)
    .map(({ what }) => what);
}

describe('the marks of the http lab', () => {
  it.each<{ it: string; row: Row; others?: Row[]; missed: string[] }>([
    { it: 'hold for good figures at 3×', row: row('auto', 3), missed: [] },
    {
      it: 'ask for 0.9 of capacity at 3×',
      row: row('auto', 3, { goodput: 0.89 }),
      missed: ['goodput'],
    },
    { it: 'for 0.8 at 6×', row: row('auto', 6, { goodput: 0.8 }), missed: [] },
    {
      it: 'and for 0.88 before a framework',
      row: row('protect', 6, { goodput: 0.87 }),
      missed: ['goodput'],
    },
    {
      it: 'allow one late answer in a hundred',
      row: row('fixed', 3, { late: 0.011 }),
      missed: ['late'],
    },
    {
      it: 'want refusals in 20 ms at 3×',
      row: row('timeout', 3, { refusalP99Ms: 20.1 }),
      missed: ['refusals p99 ms'],
    },
    {
      it: 'but not at 6×, where refusing fills the thread',
      row: row('timeout', 6, { refusalP99Ms: 20.1 }),
      missed: [],
    },
    {
      it: 'compare light loads with the bare server of the same framework',
      row: row('auto', 0.8, { inTime: 0.9, refused: 0.006, p99Ms: 22.1 }),
      others: [
        row('none', 0.8, { inTime: 1, refused: 0, p99Ms: 20 }),
        row('koa', 0.8, { inTime: 0.5, refused: 0, p99Ms: 500 }),
      ],
      missed: ['refused', 'in time', 'p99 ms'],
    },
    {
      it: 'want more goodput and less late than each peer',
      row: row('auto', 3),
      others: [
        row('toobusy-js', 3, { goodput: 0.96, late: 0.7 }),
        row('under-pressure', 3, { goodput: 0.4 }),
      ],
      missed: ['goodput against toobusy-js'],
    },
    { it: 'ask nothing of others', row: row('toobusy-js', 3, { goodput: 0 }), missed: [] },
    {
      it: 'fail where nothing was measured',
      row: row('auto', 3, { goodput: Number.NaN }),
      missed: ['goodput'],
    },
  ])('$it', ({ row: judged, others = [], missed: expected }) => {
    expect(missed(judged, ...others)).toEqual(expected);
  });

  it('ask the bare server for 0.9 of what its handler allows: cpu 200/s, async 500/s', () => {
    expect(capacityMark('cpu', 180)).toMatchObject({ value: 0.9, ok: true });
    expect(capacityMark('async', 449)).toMatchObject({ value: 0.898, ok: false });
  });
});

describe('medians', () => {
  it('are the middle one, or the mean of two', () => {
    expect(middleOf([3, 1, 2])).toBe(2);
    expect(middleOf([4, 1, 2, 3])).toBe(2.5);
  });

  it('are taken figure by figure', () => {
    const rounds = [1, 2, 9].map((n) => ({ ...GOOD, goodput: n, late: 10 - n }));
    expect(medianOf(rounds)).toEqual({ ...GOOD, goodput: 2, late: 8 });
  });
});

describe('the plan', () => {
  it('offers every judged workload all that LAB.md asks of it', () => {
    const plan = planOf({ quick: false });
    for (const workload of JUDGED) {
      const auto = plan.find((life) => life.workload === workload && life.arm === 'auto');
      expect(auto?.loads.map(({ factor, client }) => `${factor} ${client}`)).toEqual([
        '0.5 patient',
        '0.8 patient',
        '1.5 hangUp',
        '3 patient',
        '3 hangUp',
        '3 oneShot',
        '6 hangUp',
        '6 oneShot',
      ]);
    }
  });

  it('does what it is asked for', () => {
    const plan = planOf({
      quick: true,
      workloads: ['post'],
      arms: ['fixed'],
      factors: [2],
      clients: ['patient'],
    });
    expect(plan).toEqual([
      { workload: 'post', arm: 'fixed', loads: [{ factor: 2, client: 'patient' }] },
    ]);
  });
});
