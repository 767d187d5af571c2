import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ArmName } from './arms.js';
import { median } from './judge.js';
import type { Pool } from './pool.js';
import { parseScenario, type Scenario } from './scenario.js';
import type { WindowFigures } from './simulate.js';

const LOADS = [0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10];
const SEEDS = [1, 2, 3];
const COLOURS = [
  '#0b6e4f',
  '#9a9a9a',
  '#3a6ea5',
  '#c0392b',
  '#d68910',
  '#8e44ad',
  '#16a085',
  '#7f5539',
];

interface Chart {
  readonly name: string;
  readonly title: string;
  readonly of: (figures: WindowFigures) => number;
  readonly most: number;
  readonly ticks: readonly number[];
  readonly isLog?: boolean;
  readonly label: (tick: number) => string;
}

const percent = (value: number): string => `${Math.round(value * 100)} %`;
const CHARTS: readonly Chart[] = [
  {
    name: 'lab-goodput',
    title: 'Answers in time ÷ what an ideal service would give',
    of: (w) => w.goodput,
    most: 1.05,
    ticks: [0, 0.25, 0.5, 0.75, 1],
    label: percent,
  },
  {
    name: 'lab-p99',
    title: 'p99 of admitted calls, in milliseconds',
    of: (w) => w.p99Ms,
    most: 20_000,
    ticks: [50, 100, 250, 1000, 5000, 20_000],
    isLog: true,
    label: String,
  },
  {
    name: 'lab-refused',
    title: 'Share of the calls refused',
    of: (w) => w.refused,
    most: 1,
    ticks: [0, 0.25, 0.5, 0.75, 1],
    label: percent,
  },
];

/** The plant of most rows: four servers of 2.5 ms and a delay of 40 ms, 1600 calls per second. */
export function scenarioOf(load: number): Scenario {
  return parseScenario({
    format: 1,
    row: 0,
    name: `load ${load}`,
    durationS: 40,
    measureS: [[10, 40]],
    deadlineMs: 250,
    capacity: 1600,
    stages: [
      { kind: 'servers', count: 4, serviceMs: { dist: 'exp', mean: 2.5 } },
      { kind: 'delay', serviceMs: { dist: 'fixed', mean: 40 } },
    ],
    rate: 1600 * load,
    expect: [{ measure: 0, goodputMin: 0 }],
  });
}

/** Runs every arm over the loads and writes one SVG per figure. */
export async function drawCurves(
  pool: Pool,
  folder: string,
  arms: readonly ArmName[],
): Promise<void> {
  const fixed = await pool.run({ kind: 'tune', scenario: scenarioOf(2) });
  const seen = await Promise.all(
    arms.map(async (arm) =>
      Promise.all(
        LOADS.map(async (load) => {
          const runs = SEEDS.map(async (seed) =>
            pool.run({ kind: 'run', scenario: scenarioOf(load), setting: { arm, fixed }, seed }),
          );
          return (await Promise.all(runs)).map((run) => run.windows[0] as WindowFigures);
        }),
      ),
    ),
  );
  mkdirSync(folder, { recursive: true });
  for (const chart of CHARTS) {
    const lines = arms.map((arm, i) => ({
      name: arm === 'best fixed' ? `fixed at ${fixed}` : arm,
      values: (seen[i] as WindowFigures[][]).map((runs) => median(runs.map(chart.of))),
    }));
    writeFileSync(join(folder, `${chart.name}.svg`), svg(chart, lines));
  }
}

const WIDTH = 760;
const HEIGHT = 360;
const LEFT = 60;
const RIGHT = 150;
const TOP = 40;
const BOTTOM = 44;

function svg(chart: Chart, lines: readonly { name: string; values: readonly number[] }[]): string {
  const least = chart.isLog === true ? (chart.ticks[0] as number) * 0.8 : 0;
  const x = (load: number): number =>
    LEFT + (WIDTH - LEFT - RIGHT) * along(LOADS[0] as number, LOADS.at(-1) as number, load);
  const y = (value: number): number => {
    const inside = Math.max(least, Math.min(chart.most, value));
    const share = chart.isLog === true ? along(least, chart.most, inside) : inside / chart.most;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
  };
  const grid = chart.ticks.map(
    (tick) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="#e4e4e4"/>` +
      `<text x="${LEFT - 8}" y="${at(y(tick) + 4)}" text-anchor="end">${chart.label(tick)}</text>`,
  );
  const loads = [0.1, 0.2, 0.5, 1, 2, 5, 10].map(
    (load) =>
      `<text x="${at(x(load))}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${load}</text>`,
  );
  const curves = lines.map(({ name, values }, i) => {
    const points = values
      .map((value, k) => `${at(x(LOADS[k] as number))},${at(y(value))}`)
      .join(' ');
    const colour = COLOURS[i % COLOURS.length] as string;
    const legend = TOP + 12 + 20 * i;
    return (
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="${i === 0 ? 3 : 1.5}"><title>${name}</title></polyline>` +
      `<line x1="${WIDTH - RIGHT + 14}" x2="${WIDTH - RIGHT + 38}" y1="${legend}" y2="${legend}" stroke="${colour}" stroke-width="${i === 0 ? 3 : 1.5}"/>` +
      `<text x="${WIDTH - RIGHT + 44}" y="${legend + 4}">${name}</text>`
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#333" role="img" aria-label="${chart.title}, against offered load">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="22" font-size="14" font-weight="bold">${chart.title}</text>`,
    ...grid,
    `<line x1="${at(x(1))}" x2="${at(x(1))}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#bbb" stroke-dasharray="4 4"/>`,
    ...loads,
    `<text x="${at((LEFT + WIDTH - RIGHT) / 2)}" y="${HEIGHT - 8}" text-anchor="middle">offered load ÷ capacity</text>`,
    ...curves,
    '</svg>',
    '',
  ].join('\n');
}

const at = (value: number): string => value.toFixed(1);

/** How far `value` lies on a logarithmic way, 0 to 1. */
const along = (from: number, to: number, value: number): number =>
  Math.log(value / from) / Math.log(to / from);
