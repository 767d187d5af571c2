import { seededRandom } from '@elimit/testkit';
import { type DistributionSpec, meanUs } from './distribution.js';
import type { OverTimeSpec } from './over-time.js';
import type { Expectation, Scenario, Stage } from './scenario.js';

/**
 * Scenarios of the same kinds as the handed ones, with numbers drawn anew: what an engine was never tuned on. Pass marks
 * are those of the row; a latency mark moves with the plant: no-load p99 plus the time that the row's places take to drain.
 */
export function variants(seed: number): Scenario[] {
  const random = seededRandom(seed);
  const between = (low: number, high: number): number => low * (high / low) ** random();
  const whole = (low: number, high: number): number => Math.round(between(low, high));

  /** Servers and a delay behind them, as in the rows that say nothing else; 500 to 3000 calls per second. */
  const usual = (): Plant & {
    readonly servers: number;
    readonly serviceMs: number;
    readonly delayMs: number;
  } => {
    const servers = whole(2, 10);
    const serviceMs = round(between(Math.max(1, servers / 3), servers * 1.6));
    const delayMs = round(between(15, 80));
    return {
      ...plantOf(servers, servers, { dist: 'exp', mean: serviceMs }, delayMs),
      servers,
      serviceMs,
      delayMs,
    };
  };
  const made: Scenario[] = [];
  const add = (
    row: number,
    name: string,
    plant: Plant,
    rate: OverTimeSpec,
    durationS: number,
    measureS: Scenario['measureS'],
    expect: readonly Expectation[],
    more: Partial<Scenario> = {},
  ): void => {
    const { stages, capacity, deadlineMs } = plant;
    made.push({
      format: 1,
      row,
      name,
      durationS,
      deadlineMs,
      capacity,
      stages,
      rate,
      measureS,
      expect,
      ...more,
    });
  };

  for (let i = 0; i < 2; i++) {
    const plant = usual();
    const load = between(0.1, 0.7);
    add(
      1,
      `steady ${round(load)}`,
      plant,
      of(plant, load),
      60,
      [[10, 60]],
      [{ measure: 0, refusedMax: 0.001 }],
    );
  }
  for (const [load, refusedMax] of [
    [0.8, 0.005],
    [0.9, 0.007],
    [0.95, 0.025],
  ] as const) {
    const plant = usual();
    add(
      2,
      `steady ${load}`,
      plant,
      of(plant, load),
      120,
      [[20, 120]],
      [{ measure: 0, refusedMax }],
    );
  }
  for (const load of [between(1.15, 1.3), between(1.4, 1.9), between(2, 4), between(4, 10)]) {
    const plant = usual();
    // no-load p99 of an exponential service is 4.6 means; 32 places more (37 in mild overload), as in the row
    const p99Max = round(
      plant.delayMs + 4.6 * plant.serviceMs + ((load < 1.4 ? 37 : 32) * 1000) / plant.capacity,
    );
    const goodputMin = load < 1.4 ? 0.98 : 0.985;
    add(
      3,
      `overload ${round(load)}`,
      plant,
      of(plant, load),
      60,
      [[10, 60]],
      [{ measure: 0, goodputMin, p99Max }],
    );
  }
  {
    const plant = usual();
    const high = between(2, 5);
    const rate = {
      steps: [
        [0, of(plant, between(0.3, 0.6))],
        [30, of(plant, high)],
      ] as const,
    };
    add(
      4,
      `step to ${round(high)}`,
      plant,
      rate,
      50,
      [
        [30, 32],
        [32, 50],
      ],
      [
        { measure: 0, goodputMin: 0.96 },
        { measure: 1, goodputMin: 0.98 },
      ],
    );
  }
  {
    const plant = usual();
    const rate = {
      steps: [
        [0, between(2, 15)],
        [60, of(plant, between(2, 5))],
      ] as const,
    };
    add(
      5,
      'idle then overload',
      plant,
      rate,
      80,
      [
        [60, 62],
        [64, 80],
      ],
      [
        { measure: 0, goodputMin: 0.7 },
        { measure: 1, goodputMin: 0.975 },
      ],
    );
  }
  {
    const plant = usual();
    add(
      6,
      'cold',
      plant,
      of(plant, 0.9),
      20,
      [
        [0, 2],
        [4, 20],
      ],
      [
        { measure: 0, goodputMin: 0.93 },
        { measure: 1, refusedMax: 0.015 },
      ],
    );
  }
  const spread: readonly (() => DistributionSpec)[] = [
    () => ({ dist: 'exp', mean: round(between(10, 40)) }),
    () => ({ dist: 'lognormal', mean: round(between(10, 40)), cv: round(between(1.5, 3)) }),
    () => ({
      dist: 'bimodal',
      fast: round(between(3, 10)),
      slow: round(between(100, 250)),
      share: 0.1,
    }),
    () => ({
      dist: 'pareto',
      min: round(between(5, 15)),
      alpha: round(between(1.7, 2.2)),
      max: 5000,
    }),
  ];
  for (const service of spread) {
    const servers = whole(20, 60);
    const plant = { ...plantOf(servers, servers, service()), deadlineMs: 2000 };
    const [free, over] = [between(0.7, 0.8), between(1.5, 3)];
    const { dist } = (plant.stages[0] as Stage).serviceMs;
    add(
      7,
      `${dist} ${round(free)}`,
      plant,
      of(plant, free),
      80,
      [[20, 80]],
      [{ measure: 0, refusedMax: 0.006 }],
    );
    add(
      8,
      `${dist} ${round(over)}`,
      plant,
      of(plant, over),
      80,
      [[20, 80]],
      [{ measure: 0, goodputMin: 0.94 }],
    );
  }
  {
    const servers = whole(2, 5);
    const serviceMs = round(between(servers / 2, servers * 1.2));
    const steps = [
      [0, 2 * servers],
      [30, servers],
      [60, 2 * servers],
    ] as const;
    const plant = plantOf(
      { steps },
      2 * servers,
      { dist: 'exp', mean: serviceMs },
      between(20, 60),
    );
    const half = round(plant.capacity / 2);
    const p99Max = round(plant.noLoadMs + 3.6 * serviceMs + (28 * 1000) / half);
    add(
      9,
      'capacity halves and returns',
      plant,
      of(plant, 1.5),
      85,
      [
        [20, 30],
        [32, 60],
        [63, 85],
      ],
      [
        { measure: 0, goodputMin: 0.975 },
        { measure: 1, goodputMin: 0.96, p99Max },
        { measure: 2, goodputMin: 0.96 },
      ],
      {
        capacity: {
          steps: [
            [0, plant.capacity],
            [30, half],
            [60, plant.capacity],
          ],
        },
      },
    );
  }
  for (let i = 0; i < 2; i++) {
    const plant = usual();
    const [before, after] = [round(between(10, 50)), round(between(150, 500))];
    const stages: Stage[] = [
      plant.stages[0] as Stage,
      {
        kind: 'delay',
        serviceMs: {
          dist: 'fixed',
          mean: {
            steps: [
              [0, before],
              [30, after],
            ],
          },
        },
      },
    ];
    add(
      10,
      `dependency ${before} to ${after}`,
      { ...plant, stages, deadlineMs: 3 * after + 200 },
      of(plant, between(0.35, 0.6)),
      70,
      [
        [10, 30],
        [33 + after / 300, 70],
      ],
      [
        { measure: 0, refusedMax: 0.002 },
        { measure: 1, goodputMin: 0.95 },
      ],
    );
  }
  {
    const plant = usual();
    const [before, after] = [round(between(1, 10)), round(between(50, 130))];
    const stages: Stage[] = [
      plant.stages[0] as Stage,
      {
        kind: 'delay',
        serviceMs: {
          dist: 'fixed',
          mean: {
            ramp: [
              [0, before],
              [10, before],
              [54, after],
              [70, after],
            ],
          },
        },
      },
    ];
    add(
      11,
      `delay ramps ${before} to ${after}`,
      { ...plant, stages, deadlineMs: 600 },
      of(plant, between(0.85, 0.94)),
      70,
      [[10, 70]],
      [{ measure: 0, goodputMin: 0.96 }],
    );
  }
  for (const [load, refusedMax] of [
    [between(0.3, 0.6), 0.001],
    [0.8, 0.01],
    [0.95, 0.05],
  ] as const) {
    const plant = plantOf(1, 1, { dist: 'exp', mean: round(between(2, 12)) });
    add(
      12,
      `tiny ${round(load)}`,
      { ...plant, deadlineMs: 500 },
      of(plant, load),
      200,
      [[20, 200]],
      [{ measure: 0, refusedMax }],
    );
  }
  for (const load of [between(1.15, 1.4), between(2, 4), between(6, 12)]) {
    const plant = {
      ...plantOf(1, 1, { dist: 'exp', mean: round(between(2, 10)) }),
      deadlineMs: 500,
    };
    add(
      13,
      `tiny ${round(load)}x`,
      plant,
      of(plant, load),
      100,
      [[20, 100]],
      [{ measure: 0, goodputMin: 0.97, p99Max: 300 }],
    );
  }
  for (const [load, expect] of [
    [between(0.2, 0.5), { measure: 0, refusedMax: 0.001 }],
    [0.8, { measure: 0, refusedMax: 0.005 }],
    [0.95, { measure: 0, refusedMax: 0.025 }],
    [between(2, 4), { measure: 0, goodputMin: 0.975, p99Max: 350 }],
  ] as const) {
    const servers = whole(6, 16);
    const plant = {
      ...plantOf(servers, servers, { dist: 'exp', mean: round(between(10, 40)) }),
      deadlineMs: 500,
    };
    add(14, `mid ${round(load)}`, plant, of(plant, load), 120, [[20, 120]], [expect]);
  }
  for (const [load, expect] of [
    [0.5, { measure: 0, refusedMax: 0.01 }],
    [0.8, { measure: 0, refusedMax: 0.03 }],
    [between(1.2, 1.5), { measure: 0, goodputMin: 0.9 }],
    [between(2, 4), { measure: 0, goodputMin: 0.9 }],
  ] as const) {
    const servers = whole(3, 8);
    const mean = round(between(500, 1500));
    const plant = { ...plantOf(servers, servers, { dist: 'exp', mean }), deadlineMs: 10 * mean };
    add(15, `slow ${round(load)}`, plant, of(plant, load), 800, [[100, 800]], [expect]);
  }
  {
    const serviceMs = round(between(1, 4));
    const plant = {
      ...plantOf(1, 1, { dist: 'fixed', mean: serviceMs }),
      deadlineMs: Math.round(25 * serviceMs),
    };
    add(
      16,
      'cpu',
      plant,
      of(plant, between(1.5, 3)),
      60,
      [[10, 60]],
      [{ measure: 0, goodputMin: 0.95 }],
    );
  }
  {
    const servers = whole(1, 3);
    const plant = plantOf(servers, servers, {
      dist: 'exp',
      mean: round(servers * between(70, 140)),
    });
    add(
      17,
      'few a second',
      { ...plant, deadlineMs: 1800 },
      of(plant, between(2, 4)),
      300,
      [[60, 300]],
      [{ measure: 0, goodputMin: 0.92 }],
    );
  }
  {
    const plant = usual();
    const above = Math.round((plant.capacity * plant.noLoadMs) / 1000);
    add(
      18,
      'slows with inflight',
      plant,
      of(plant, between(1.7, 3)),
      60,
      [[20, 60]],
      [{ measure: 0, goodputMin: 0.89 }],
      {
        degrade: { above, slope: round(between(0.3, 0.6)) },
      },
    );
  }
  {
    const plant = usual();
    const rate = {
      cycle: whole(2, 5),
      steps: [
        [0, of(plant, between(2, 4))],
        [1, of(plant, between(0.1, 0.3))],
      ] as const,
    };
    add(19, 'bursts', plant, rate, 60, [[12, 60]], [{ measure: 0, goodputMin: 0.94 }]);
  }
  {
    const servers = whole(6, 12);
    const service: DistributionSpec = {
      dist: 'bimodal',
      fast: round(between(1, 4)),
      slow: round(between(25, 60)),
      share: 0.2,
    };
    const plant = plantOf(servers, servers, service);
    add(
      19,
      'two costs',
      { ...plant, deadlineMs: 300 },
      of(plant, between(1.6, 2.5)),
      80,
      [[20, 80]],
      [{ measure: 0, goodputMin: 0.92 }],
    );
  }
  for (const failures of [
    { share: 0.2, latency: 'fast' },
    { share: 0.2, latencyMs: Math.round(between(500, 1500)) },
  ] as const) {
    const plant = { ...usual(), deadlineMs: 2000 };
    const refusedMax = 'latency' in failures ? 0.01 : 0.02;
    add(
      19,
      'latency' in failures ? 'fast failures' : 'slow failures',
      plant,
      of(plant, between(0.6, 0.7)),
      60,
      [[15, 60]],
      [{ measure: 0, refusedMax }],
      { failures },
    );
  }
  {
    const plant = usual();
    const calm = of(plant, between(0.7, 0.8));
    const rate = {
      steps: [
        [0, calm],
        [20, of(plant, between(2.5, 4))],
        [30, calm],
      ] as const,
    };
    add(20, 'retry storm', plant, rate, 60, [[35, 60]], [{ measure: 0, goodputMin: 0.975 }], {
      retries: { times: 2, afterMs: [50, 150] },
    });
  }
  {
    const plant = usual();
    add(
      21,
      'long mild overload',
      plant,
      of(plant, 1.2),
      600,
      [[60, 600]],
      [{ measure: 0, goodputMin: 0.98, limitDriftMax: 0.12 }],
    );
  }
  {
    const plant = usual();
    add(
      22,
      'priority',
      plant,
      of(plant, between(1.7, 2.2)),
      60,
      [[15, 60]],
      [
        { measure: 0, class: 'critical', refusedMax: 0.003 },
        { measure: 0, goodputMin: 0.975 },
      ],
      {
        classes: [
          { name: 'critical', share: 0.3 },
          { name: 'default', share: 0.4 },
          { name: 'sheddable', share: 0.3 },
        ],
      },
    );
  }
  return made;
}

interface Plant {
  readonly stages: readonly Stage[];
  readonly capacity: number;
  readonly noLoadMs: number;
  readonly deadlineMs: number;
}
function plantOf(
  count: OverTimeSpec,
  servers: number,
  serviceMs: DistributionSpec,
  delayMs = 0,
): Plant {
  const mean = meanUs(serviceMs) / 1000;
  const stages: Stage[] = [{ kind: 'servers', count, serviceMs }];
  if (delayMs > 0)
    stages.push({ kind: 'delay', serviceMs: { dist: 'fixed', mean: round(delayMs) } });
  return {
    stages,
    capacity: round((1000 * servers) / mean),
    noLoadMs: mean + delayMs,
    deadlineMs: Math.round(Math.max(50, 6 * (mean + delayMs))),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function of(plant: Plant, load: number): number {
  return round(plant.capacity * load);
}
