import type { Random } from '@elimit/core';
import { seededRandom } from '@elimit/testkit';
import { admissionOf } from './arms.js';
import type { DistributionSpec } from './distribution.js';
import { OverTime, type OverTimeSpec, type Point } from './over-time.js';
import type { Expectation, Scenario, Stage } from './scenario.js';
import { simulate } from './simulate.js';

/** The times of a short answer to a change: windows that begin or end so soon after a step keep their distance from it. */
const SOON_S = 5;
/** What a plant does when nobody waits is looked at under this load, with this seed, over this many calls. */
const NO_LOAD = { share: 0.05, seed: 4711, calls: 4000 };

/** So many variations; the same ones for a seed and a name, whatever other scenarios are varied beside it. */
export function variationsOf(scenario: Scenario, count: number, seed: number): Scenario[] {
  let hash = 0;
  for (const character of scenario.name) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
  const random = seededRandom(hash ^ Math.imul(seed, 0x9e3779b1));
  return Array.from({ length: count }, () => vary(scenario, random));
}

/**
 * The same story with other numbers: times, servers, delays, deadlines, loads and phases are drawn anew within a factor
 * of two. Marks are carried over in the scenario's own terms: shares stay; a latency mark keeps its ratio to the no-load
 * p99 or its places in the queue, whichever is more.
 */
export function vary(scenario: Scenario, random: Random): Scenario {
  const between = (low: number, high: number): number => low * (high / low) ** random();
  const time = between(0.5, 2);
  const delay = time * between(0.6, 1.7);
  const phase = between(0.7, 1.4);
  const deadline = time * between(0.8, 2);
  const fewest = leastCount(scenario.stages);
  const servers = Math.max(1, Math.round(fewest * between(0.5, 2))) / fewest;
  const faster = servers / time;
  const atS = phaseMap(scenario, phase, Math.max(1, time));
  const load = between(0.75, 1.5);

  const stages = scenario.stages.map((stage): Stage => {
    const factor = stage.kind === 'delay' ? delay : time;
    const serviceMs = slower(stage.serviceMs, factor, atS);
    if (stage.count === undefined) return { kind: stage.kind, serviceMs };
    return { kind: stage.kind, count: mapped(stage.count, (v) => v * servers, atS), serviceMs };
  });
  const capacity = mapped(scenario.capacity, (v) => v * faster, atS);
  const most = highest(scenario.capacity);
  // an overload is more or less of one; what fitted still fits, with as much room or more
  const rate = mapped(
    scenario.rate,
    (v) => {
      const share = v / most;
      const other = share > 1 ? 1 + (share - 1) * load : 1 - (1 - share) * Math.max(1, load);
      return round(Math.max(other, share / 3) * most * faster);
    },
    atS,
  );
  const varied: Scenario = {
    ...scenario,
    name: `${scenario.name} varied`,
    durationS: atS(scenario.durationS),
    measureS: scenario.measureS.map(([from, to]) => [atS(from), atS(to)] as const),
    stages,
    capacity,
    rate,
    deadlineMs:
      typeof scenario.deadlineMs === 'number'
        ? Math.round(scenario.deadlineMs * deadline)
        : scenario.deadlineMs.map(({ ms, share }) => ({ ms: Math.round(ms * deadline), share })),
    ...(scenario.degrade && {
      degrade: { ...scenario.degrade, above: kneeOf(scenario, stages, faster) },
    }),
    ...(scenario.failures?.latencyMs !== undefined && {
      failures: { ...scenario.failures, latencyMs: round(scenario.failures.latencyMs * time) },
    }),
  };
  return { ...varied, expect: scenario.expect.map((one) => carried(one, scenario, varied)) };
}

/** Moves the seconds of a story: phases become longer or shorter, what is said about the moments after a step does not. */
function phaseMap(
  { rate, capacity, stages, durationS }: Scenario,
  phase: number,
  soon: number,
): (s: number) => number {
  const specs: OverTimeSpec[] = [rate, capacity];
  for (const { count, serviceMs } of stages) {
    if (count !== undefined) specs.push(count);
    if (serviceMs.dist === 'fixed') specs.push(serviceMs.mean);
  }
  const knots = new Set([0, durationS]);
  for (const spec of specs) {
    if (typeof spec === 'number' || 'cycle' in spec) continue;
    for (const [s] of 'ramp' in spec ? spec.ramp : spec.steps) knots.add(s);
  }
  const sorted = [...knots].toSorted((a, b) => a - b);
  return (s) => {
    const knot = sorted.findLast((one) => one <= s) ?? 0;
    const after = s - knot;
    return round(knot * phase + after * (after <= SOON_S ? soon : phase));
  };
}

function mapped(
  spec: OverTimeSpec,
  value: (v: number) => number,
  atS: (s: number) => number,
): OverTimeSpec {
  if (typeof spec === 'number') return round(value(spec));
  const points = (list: readonly Point[], when: (s: number) => number): Point[] =>
    list.map(([s, v]) => [when(s), round(value(v))]);
  if ('ramp' in spec) return { ramp: points(spec.ramp, atS) };
  if (spec.cycle === undefined) return { steps: points(spec.steps, atS) };
  return { cycle: spec.cycle, steps: points(spec.steps, (s) => s) };
}

function slower(
  spec: DistributionSpec,
  factor: number,
  atS: (s: number) => number,
): DistributionSpec {
  const ms = (v: number): number => round(v * factor);
  switch (spec.dist) {
    case 'fixed':
      return { ...spec, mean: mapped(spec.mean, (v) => v * factor, atS) };
    case 'exp':
    case 'lognormal':
      return { ...spec, mean: ms(spec.mean) };
    case 'bimodal':
      return { ...spec, fast: ms(spec.fast), slow: ms(spec.slow) };
    case 'pareto':
      return { ...spec, min: ms(spec.min), max: ms(spec.max) };
  }
}

function carried(mark: Expectation, before: Scenario, now: Scenario): Expectation {
  if (mark.p99Max === undefined) return mark;
  const [was, is] = [noLoadP99Ms(before), noLoadP99Ms(now)];
  const [had, has] = [lowest(before.capacity), lowest(now.capacity)];
  const ratio = is * (mark.p99Max / was);
  const places = is + ((mark.p99Max - was) * had) / has;
  return { ...mark, p99Max: round(Math.max(ratio, places)) };
}

function noLoadP99Ms(scenario: Scenario): number {
  const rate = NO_LOAD.share * lowest(scenario.capacity);
  const durationS = NO_LOAD.calls / rate;
  const { windows } = simulate(
    {
      ...scenario,
      rate,
      durationS,
      measureS: [[0, durationS]],
      expect: [],
    },
    admissionOf({ arm: 'none' }, scenario),
    NO_LOAD.seed,
  );
  return (windows[0] as (typeof windows)[number]).p99Ms;
}

/** Calls that are being worked on when the plant is just busy, moved with the plant. */
function kneeOf({ degrade }: Scenario, stages: readonly Stage[], faster: number): number {
  const was = 68 / 1600; // row 18: its 68 are the 1600/s × 42.5 ms of the usual plant
  const meanS = stages.reduce((sum, { serviceMs }) => {
    const mean = 'mean' in serviceMs ? serviceMs.mean : 0;
    return sum + (typeof mean === 'number' ? mean : 0) / 1000;
  }, 0);
  return Math.max(1, Math.round((degrade?.above ?? 1) * faster * (meanS / was)));
}

function leastCount(stages: readonly Stage[]): number {
  const counts = stages.flatMap(({ count }) => (count === undefined ? [] : [lowest(count)]));
  return counts.length === 0 ? 1 : Math.max(1, Math.min(...counts));
}

function lowest(spec: OverTimeSpec): number {
  return Math.min(...valuesOf(spec));
}
function highest(spec: OverTimeSpec): number {
  return Math.max(...valuesOf(spec));
}
function valuesOf(spec: OverTimeSpec): number[] {
  if (typeof spec === 'number') return [spec];
  return ('ramp' in spec ? spec.ramp : spec.steps).map(([s]) => new OverTime(spec).at(s));
}

function round(value: number): number {
  return Number(value.toPrecision(5));
}
