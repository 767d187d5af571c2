import { type BreakerChange, createBreaker, type Outcome, StrictBreaker } from '@elimit/core';
import { type ErrorCode, playCompletionRow, RowNoise } from './completion-rows.js';
import { Difference, same, type VectorKind, type VectorRecord } from './vector-file.js';

const COLUMNS = {
  healthy_returns: 'healthy',
  unhealthy_returns: 'unhealthy',
  first_unhealthy_offset: 'firstUnhealthy',
  broken: 'broken',
  half_open: 'halfOpen',
  half_open_success_count: 'halfOpenSuccessCount',
  isolated_times: 'isolatedTimes',
  isolation_duration_ms: 'isolationDurationMs',
  last_reset_time_ms: 'lastResetTimeMs',
  long_init_samples: 'longInitSamples',
  long_init_errors: 'longInitErrors',
  long_ema_latency: 'longEmaLatencyUs',
  long_ema_error_cost: 'longEmaErrorCostUs',
  short_init_samples: 'shortInitSamples',
  short_init_errors: 'shortInitErrors',
  short_ema_latency: 'shortEmaLatencyUs',
  short_ema_error_cost: 'shortEmaErrorCostUs',
};

const PREFIX = 'circuit_breaker_';
const OPTIONS: Readonly<Record<string, readonly [name: string, divisor: number]>> = {
  short_window_size: ['shortWindowSize', 1],
  long_window_size: ['longWindowSize', 1],
  short_window_error_percent: ['shortWindowErrorRatio', 100],
  long_window_error_percent: ['longWindowErrorRatio', 100],
  min_error_cost_us: ['minErrorCostMs', 1000],
  max_failed_latency_mutiple: ['maxFailedLatencyMultiple', 1],
  min_isolation_duration_ms: ['minIsolationMs', 1],
  max_isolation_duration_ms: ['maxIsolationMs', 1],
  epsilon_value: ['epsilon', 1],
  half_open_window_size: ['halfOpenWindowSize', 1],
};

const OUTCOMES: Record<ErrorCode, Outcome> = { 0: 'success', 1: 'failure', 2: 'ignored' };

/** Files of the strict breaker. */
export const breakerVectors: VectorKind = { kinds: ['breaker'], replay };

function replay(file: VectorRecord): void {
  const columns = file.texts('state_columns');
  same('state_columns', Object.keys(COLUMNS), columns);
  same(
    'trace_columns',
    ['completion_index', 'time_us', 'what', 'isolated_times', 'isolation_duration_ms'],
    file.texts('trace_columns'),
  );
  const noise = new RowNoise(file.has('seed') ? file.number('seed') : 0);
  const rows = file.list('rows');
  const expected = file.list('expect');
  same('expect.length', rows.length, expected.length);

  let nowUs = file.number('start_us');
  let completions = 0;
  let changes: BreakerChange[] = [];
  const returns = { healthy: 0, unhealthy: 0, firstUnhealthy: -1 };
  const trace: unknown[][] = [];
  const engine = strictBreaker(file, (change) => changes.push(change));
  const state = (): unknown[] => stateOf(engine, returns);
  const target = {
    wait(us: number): void {
      nowUs += us;
    },
    complete(code: ErrorCode, latencyUs: number): void {
      changes = [];
      if (engine.record(OUTCOMES[code], latencyUs, nowUs)) returns.healthy += 1;
      else {
        if (returns.firstUnhealthy < 0)
          returns.firstUnhealthy = returns.healthy + returns.unhealthy;
        returns.unhealthy += 1;
      }
      for (const change of changes) {
        const { isolatedTimes, isolationDurationMs } = engine.dump();
        const what = change.state === 'open' ? 'broken' : 'closed';
        trace.push([completions, nowUs, what, isolatedTimes, isolationDurationMs]);
      }
      completions += 1;
    },
  };
  same('initial', file.list('initial'), state());

  for (const [i, row] of rows.entries()) {
    const where = `rows[${i}]`;
    if (!Array.isArray(row)) throw new Difference(where, 'a row', row);
    Object.assign(returns, { healthy: 0, unhealthy: 0, firstUnhealthy: -1 });
    let got: unknown = null;
    if (row[0] === 'f') {
      same(`${where}.length`, 3, row.length);
      engine.configure(optionOf(where, row[1], row[2]));
    } else if (row[0] === 'reset' || row[0] === 'break') {
      same(`${where}.length`, 1, row.length);
      if (row[0] === 'reset') engine.reset(nowUs);
      else engine.isolate(nowUs, 'vector');
      got = state();
    } else if (playCompletionRow(where, row, noise, target)) {
      if (row[0] !== 'w') got = state();
    } else throw new Difference(where, 'a row this kind knows', row[0]);
    same(`expect[${i}]`, expected[i], got);
  }
  same('trace', file.list('trace'), trace);
  same('completions', file.number('completions'), completions);
}

function strictBreaker(
  file: VectorRecord,
  onChange: (change: BreakerChange) => void,
): StrictBreaker {
  const smooth = file.record('smooth');
  const options: Record<string, unknown> = {};
  const flags = file.record('flags');
  for (const flag of flags.names) Object.assign(options, optionOf('flags', flag, flags.any(flag)));
  const engine = createBreaker(
    {
      strict: true,
      ...options,
      smooth: { long: smooth.number('long'), short: smooth.number('short') },
    },
    { onChange },
  );
  if (!(engine instanceof StrictBreaker)) throw new Difference('engine', 'StrictBreaker', engine);
  return engine;
}

function optionOf(where: string, flag: unknown, value: unknown): Record<string, number> {
  const known = typeof flag === 'string' ? OPTIONS[flag.slice(PREFIX.length)] : undefined;
  if (known === undefined) throw new Difference(where, Object.keys(OPTIONS).join(', '), flag);
  const [name, divisor] = known;
  return { [name]: Number(value) / divisor };
}

function stateOf(engine: StrictBreaker, returns: object): unknown[] {
  const { long, short, ...rest } = engine.dump();
  const state: Record<string, unknown> = { ...returns, ...rest };
  for (const [key, value] of Object.entries(long)) state[`long${upperFirst(key)}`] = value;
  for (const [key, value] of Object.entries(short)) state[`short${upperFirst(key)}`] = value;
  return Object.values(COLUMNS).map((name) => state[name]);
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
