import { type Arm, bareOf } from './arms.js';
import { IDEAL_PER_SECOND, type Workload } from './handlers.js';
import type { ClientKind } from './load.js';

/** What one run showed. */
export interface Figures {
  /** Answered within the deadline, per second ÷ capacity of the bare server, both of this round. */
  readonly goodput: number;
  /** Answered within the deadline, of those offered. */
  readonly inTime: number;
  /** Shares of the offered. */
  readonly refused: number;
  readonly late: number;
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly refusalP50Ms: number;
  readonly refusalP99Ms: number;
  /** How late the client was in sending, at p99: a run in which this is long says little. */
  readonly lagP99Ms: number;
}

export interface Row {
  readonly workload: Workload;
  readonly arm: Arm;
  readonly factor: number;
  readonly client: ClientKind;
  /** One entry for each round. */
  readonly rounds: readonly Figures[];
  readonly median: Figures;
}

export interface Mark {
  readonly what: string;
  readonly value: number;
  readonly bound: number;
  readonly atLeast: boolean;
  readonly ok: boolean;
}

/** The arms that have to hold the marks; the others are shown beside them. */
const OURS: ReadonlySet<Arm> = new Set([
  'auto',
  'timeout',
  'fixed',
  'protect',
  'protect-fixed',
  'koa-auto',
  'nest-auto',
  'nest-front',
]);
const PEERS: ReadonlySet<Arm> = new Set(['toobusy-js', 'overload-protection', 'under-pressure']);

/** A timer's grain: p99 of a light load cannot be told apart by less. */
const GRAIN_MS = 1;
const CAPACITY_OF_IDEAL = 0.9;

/** The marks of LAB.md section 2 that a row has to hold; none for an arm that is not ours. */
export function marksOf(row: Row, rows: readonly Row[]): Mark[] {
  if (!OURS.has(row.arm)) return [];
  const { factor, median } = row;
  if (factor < 1) return lightMarks(row, rows);
  if (factor < 3) return [];
  const server = row.arm.startsWith('protect');
  const marks = [
    atLeast('goodput', median.goodput, factor < 6 ? 0.9 : server ? 0.88 : 0.8),
    atMost('late', median.late, 0.01),
  ];
  if (factor < 6) marks.push(atMost('refusals p99 ms', median.refusalP99Ms, 20));
  if (row.arm === 'auto') marks.push(...peerMarks(row, rows));
  return marks;
}

function lightMarks(row: Row, rows: readonly Row[]): Mark[] {
  const bare = sameLoad(row, rows).find((other) => other.arm === bareOf(row.arm));
  const marks = [atMost('refused', row.median.refused, 0.005)];
  if (bare !== undefined) {
    marks.push(atLeast('in time', row.median.inTime, 0.95 * bare.median.inTime));
    marks.push(atMost('p99 ms', row.median.p99Ms, 1.05 * bare.median.p99Ms + GRAIN_MS));
  }
  return marks;
}

/** More goodput and less late than every peer. */
function peerMarks(row: Row, rows: readonly Row[]): Mark[] {
  return sameLoad(row, rows)
    .filter((other) => PEERS.has(other.arm))
    .flatMap((peer) => [
      atLeast(`goodput against ${peer.arm}`, row.median.goodput, peer.median.goodput),
      atMost(`late against ${peer.arm}`, row.median.late, peer.median.late),
    ]);
}

/** The rows of all arms under the load of this one, its own among them. */
export function sameLoad(row: Row, rows: readonly Row[]): Row[] {
  return rows.filter(
    ({ workload, factor, client }) =>
      workload === row.workload && factor === row.factor && client === row.client,
  );
}

/** Measured capacity ÷ what the handler's CPU time or its downstream's slots allow. */
export function capacityMark(workload: Workload, perSecond: number): Mark {
  return atLeast('capacity of ideal', perSecond / IDEAL_PER_SECOND[workload], CAPACITY_OF_IDEAL);
}

function atLeast(what: string, value: number, bound: number): Mark {
  return { what, value, bound, atLeast: true, ok: value >= bound };
}

function atMost(what: string, value: number, bound: number): Mark {
  return { what, value, bound, atLeast: false, ok: value <= bound };
}

/** Figure by figure; of an even number of rounds, the mean of the two in the middle. */
export function medianOf(rounds: readonly Figures[]): Figures {
  const first = rounds[0];
  if (first === undefined) throw new RangeError('a median of no rounds');
  const keys = Object.keys(first) as (keyof Figures)[];
  return Object.fromEntries(
    keys.map((key) => [key, middleOf(rounds.map((round) => round[key]))]),
  ) as unknown as Figures;
}

export function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
