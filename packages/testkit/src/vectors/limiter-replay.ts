import {
  configurableOf,
  createGuard,
  createLimiter,
  type Limiter,
  type LimiterStep,
  type MaxConcurrency,
  type Outcome,
  type Permit,
  parseMaxConcurrency,
  type Random,
  type StatefulLimiter,
} from '@elimit/core';
import {
  type ErrorCode,
  errorCode,
  playCompletionRow,
  RowNoise,
  rowNumbers,
} from './completion-rows.js';
import { Difference, numbersOf, same, type VectorRecord } from './vector-file.js';

/** What is particular to the files of one law. */
export interface LimiterScript {
  /** From the files' columns to the names in the engine's state. */
  readonly columns: Readonly<Record<string, string>>;
  readonly limit: MaxConcurrency;
  readonly random: Random;
  /** The options that a setting changed under way means; none for one that is read at construction only. */
  change(where: string, flag: string, value: unknown): Readonly<Record<string, unknown>>;
}

const OUTCOMES: Record<ErrorCode, Outcome> = { 0: 'success', 1: 'failure', 2: 'ignored' };
const LETTERS: Record<LimiterStep, string> = {
  updated: 'U',
  remeasure: 'M',
  failed: 'H',
  discarded: 'D',
  drained: 'X',
};
const REQUEST = 3; // in the triples of an `x` row; 0 to 2 are completions

/**
 * Replays a limiter's file: its start, every row, and the whole trace. A file with recorded streams is replayed once more
 * through a guard, which then has to count the calls in flight and to time them by itself.
 *
 * @param scriptOf - reads the script anew: each replay has its own chance
 */
export function replayLimiter(
  file: VectorRecord,
  scriptOf: (file: VectorRecord) => LimiterScript,
): void {
  replayOn(file, scriptOf(file), (engine) => ({
    admits: (inflight, nowUs) => engine.admits(inflight, nowUs, Number.POSITIVE_INFINITY),
    complete: (code, latencyUs, nowUs) => engine.record(OUTCOMES[code], latencyUs, nowUs, 1),
  }));
  if (replaysThroughGuard(file)) {
    try {
      replayOn(file, scriptOf(file), guarded);
    } catch (error) {
      if (!(error instanceof Difference)) throw error;
      throw new Difference(`through a guard, ${error.where}`, error.expected, error.got);
    }
  }
}

/** Where recorded calls meet the engine: at once, or by way of a guard. */
interface Entrance {
  admits(inflight: number, nowUs: number): boolean;
  complete(code: ErrorCode, latencyUs: number, nowUs: number): void;
}

function replayOn(
  file: VectorRecord,
  script: LimiterScript,
  enter: (engine: Limiter, clock: { nowUs(): number }) => Entrance,
): void {
  const columns = columnsOf(file, 'state_columns', script);
  const traceColumns = file.texts('trace_columns');
  same('trace_columns', ['completion_index', 'time_us', 'what'], traceColumns.slice(0, 3));
  const traced = traceColumns.slice(3).map((column) => nameOf('trace_columns', column, script));
  const noise = new RowNoise(file.has('seed') ? file.number('seed') : 0);
  const rows = file.list('rows');
  const expected = file.list('expect');
  same('expect.length', rows.length, expected.length);

  let nowUs = file.number('start_us');
  let completions = 0;
  let steps = '';
  const trace: unknown[][] = [];
  const engine = createLimiter(parseMaxConcurrency(script.limit), {
    random: script.random,
    nowUs,
    onStep: (step) => {
      steps += LETTERS[step];
    },
  });
  const entrance = enter(engine, { nowUs: () => nowUs });
  const target = {
    wait(us: number): void {
      nowUs += us;
    },
    complete(code: ErrorCode, latencyUs: number): void {
      steps = '';
      entrance.complete(code, latencyUs, nowUs);
      if (steps !== '') trace.push([completions, nowUs, steps, ...stateOf(engine, traced)]);
      completions += 1;
    },
  };
  same('initial', file.list('initial'), stateOf(engine, columns));

  for (const [i, row] of rows.entries()) {
    const where = `rows[${i}]`;
    if (!Array.isArray(row)) throw new Difference(where, 'a row', row);
    const want = expected[i];
    const at = `expect[${i}]`;
    if (row[0] === 'q') {
      const [inflight, timeoutMs] = queryOf(where, row);
      const remainingUs = timeoutMs === null ? Number.POSITIVE_INFINITY : timeoutMs * 1000;
      same(at, want, engine.admits(inflight, nowUs, remainingUs));
    } else if (row[0] === 'f') {
      if (row.length !== 3) throw new Difference(`${where}.length`, 3, row.length);
      configurableOf(engine)?.configure(script.change(where, String(row[1]), row[2]));
      same(at, want, null);
    } else if (row[0] === 'x') {
      const accepted = playRecorded(where, row, target, (inflight) =>
        entrance.admits(inflight, nowUs),
      );
      same(at, want, { accepted, state: stateOf(engine, columns) });
    } else if (playCompletionRow(where, row, noise, target)) {
      same(at, want, row[0] === 'w' ? null : stateOf(engine, columns));
    } else throw new Difference(where, 'a row this kind knows', row[0]);
  }
  same('trace', file.list('trace'), trace);
  same('completions', file.number('completions'), completions);
}

/** The engine behind a real guard: a request holds its permit until the completion with its latency gives it back. */
function guarded(limiter: Limiter, clock: { nowUs(): number }): Entrance {
  const guard = createGuard({ limit: limiter, clock, registry: false });
  const held = new Map<number, Permit[]>(); // by the time of admission
  return {
    admits(inflight, nowUs) {
      same('in flight', inflight, guard.inflight + 1);
      const entry = guard.tryAcquire();
      if (entry.admitted) held.set(nowUs, [...(held.get(nowUs) ?? []), entry]);
      return entry.admitted;
    },
    complete(code, latencyUs, nowUs) {
      const arrivedUs = nowUs - latencyUs;
      // a completion without a request in the file is a call that met nobody else
      const entry = held.get(arrivedUs)?.pop() ?? guard.tryAcquire({ arrivedUs });
      same('admitted', true, entry.admitted);
      if (entry.admitted) entry.release(OUTCOMES[code]);
    },
  };
}

/**
 * True if the file has recorded streams and they tell a whole story: every completion is that of an admitted request, and
 * every request counts those still out. Only then can a guard live through them.
 */
export function replaysThroughGuard(file: VectorRecord): boolean {
  const rows = file.list('rows') as readonly (readonly unknown[])[];
  const expected = file.list('expect');
  const out = new Map<number, number>();
  let inflight = 0;
  let hasStream = false;
  let nowUs = 0;
  for (const [i, row] of rows.entries()) {
    if (row[0] === 'c' || row[0] === 'p' || row[0] === 'l') {
      if (inflight > 0) return false;
      out.clear(); // time moves on by more than this reads
      continue;
    }
    if (row[0] === 'w') nowUs += Number(row[1]);
    if (row[0] !== 'x') continue;
    hasStream = true;
    const { accepted } = expected[i] as { accepted: string };
    let asked = 0;
    const stream = row[1] as readonly number[];
    for (let k = 0; k < stream.length; k += 3) {
      const [us = 0, code, value = 0] = stream.slice(k, k + 3);
      nowUs += us;
      if (code === REQUEST) {
        if (value !== inflight + 1) return false;
        if (accepted[asked++] !== '1') continue;
        inflight += 1;
        out.set(nowUs, (out.get(nowUs) ?? 0) + 1);
      } else {
        const begunUs = nowUs - value;
        const left = (out.get(begunUs) ?? 0) - 1;
        if (left < 0) return false;
        out.set(begunUs, left);
        inflight -= 1;
      }
    }
  }
  return hasStream;
}

/** Plays an `x` row: a recorded stream of requests and completions. The answers to the requests, as `1`s and `0`s. */
function playRecorded(
  where: string,
  row: readonly unknown[],
  target: { wait(us: number): void; complete(code: ErrorCode, latencyUs: number): void },
  request: (inflight: number) => boolean,
): string {
  if (row.length !== 2) throw new Difference(`${where}.length`, 2, row.length);
  const stream = numbersOf(`${where}[1]`, row[1]);
  if (stream.length % 3 !== 0) throw new Difference(`${where}[1]`, 'triples', stream.length);
  let accepted = '';
  for (let i = 0; i < stream.length; i += 3) {
    const [us = 0, code, value = 0] = stream.slice(i, i + 3);
    target.wait(us);
    if (code === REQUEST) accepted += request(value) ? '1' : '0';
    else target.complete(errorCode(`${where}[1][${i + 1}]`, code), value);
  }
  return accepted;
}

function queryOf(
  where: string,
  row: readonly unknown[],
): [inflight: number, timeoutMs: number | null] {
  const isPlain = row[2] === null;
  const [inflight = 0, timeoutMs = 0] = rowNumbers(
    where,
    isPlain ? row.slice(0, 2) : row,
    isPlain ? 1 : 2,
  );
  if (row.length !== 3) throw new Difference(`${where}.length`, 3, row.length);
  return [inflight, isPlain ? null : timeoutMs];
}

function columnsOf(file: VectorRecord, field: string, script: LimiterScript): string[] {
  return file.texts(field).map((column) => nameOf(field, column, script));
}

function nameOf(field: string, column: string, { columns }: LimiterScript): string {
  const name = Object.hasOwn(columns, column) ? columns[column] : undefined;
  if (name === undefined) throw new Difference(field, Object.keys(columns).join(', '), column);
  return name;
}

function stateOf(engine: Limiter, names: readonly string[]): unknown[] {
  const state = (engine as StatefulLimiter).state();
  return names.map((name) => state[name]);
}
