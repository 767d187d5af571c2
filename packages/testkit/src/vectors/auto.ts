import { type LimiterScript, replayLimiter } from './limiter-replay.js';
import { Difference, type VectorKind, type VectorRecord } from './vector-file.js';

const COLUMNS = {
  max_concurrency: 'maxConcurrency',
  min_latency_us: 'minLatencyUs',
  ema_max_qps: 'maxQps',
  explore_ratio: 'exploreRatio',
  remeasure_start_us: 'remeasureAtUs',
  reset_latency_us: 'drainUntilUs',
  win_start_us: 'windowStartUs',
  win_succ: 'successes',
  win_failed: 'failures',
  win_succ_us: 'successUs',
  win_failed_us: 'failureUs',
  total_succ_req: 'windowCalls',
  last_sampling_us: 'lastSampleUs',
};

const INITIAL = 'auto_cl_initial_max_concurrency';
const REMEASURE = 'auto_cl_noload_latency_remeasure_interval_ms';
const OPTIONS = new Map([
  ['auto_cl_sample_window_size_ms', 'sampleWindowMs'],
  ['auto_cl_min_sample_count', 'minSampleCount'],
  ['auto_cl_max_sample_count', 'maxSampleCount'],
  ['auto_cl_sampling_interval_ms', 'samplingIntervalMs'],
  [INITIAL, 'initialMaxConcurrency'],
  [REMEASURE, 'remeasureIntervalMs'],
  ['auto_cl_alpha_factor_for_ema', 'emaAlpha'],
  ['auto_cl_enable_error_punish', 'errorPunish'],
  ['auto_cl_fail_punish_ratio', 'failPunishRatio'],
  ['auto_cl_max_explore_ratio', 'maxExploreRatio'],
  ['auto_cl_min_explore_ratio', 'minExploreRatio'],
  ['auto_cl_change_rate_of_explore_ratio', 'exploreStep'],
  ['auto_cl_reduce_ratio_while_remeasure', 'remeasureReduceRatio'],
  ['auto_cl_latency_fluctuation_correction_factor', 'latencyFluctuationCorrection'],
  ['auto_cl_error_rate_punish_threshold', 'errorRatePunishThreshold'],
  ['bthread_concurrency', 'minConcurrency'],
]);

/** Files of the strict `auto` limiter. */
export const autoVectors: VectorKind = {
  kinds: ['auto'],
  replay: (file) => replayLimiter(file, scriptOf),
};

function scriptOf(file: VectorRecord): LimiterScript {
  const draws = file.numbers('random');
  let drawn = 0;
  let remeasureMs = 50_000;
  const option = (where: string, flag: string, value: unknown): Record<string, unknown> => {
    const name = OPTIONS.get(flag);
    if (name === undefined) throw new Difference(where, [...OPTIONS.keys()].join(', '), flag);
    if (flag === REMEASURE) remeasureMs = Number(value);
    return { [name]: value };
  };
  const options: Record<string, unknown> = { minConcurrency: file.number('floor') };
  const flags = file.record('flags');
  for (const flag of flags.names) Object.assign(options, option('flags', flag, flags.any(flag)));
  return {
    columns: COLUMNS,
    limit: { type: 'auto', strict: true, ...options },
    // the file lists whole numbers below half of the interval; the engine makes them from a number in [0, 1)
    random: () => {
      const halfMs = Math.trunc(remeasureMs / 2);
      return halfMs === 0 ? 0 : ((draws[drawn++] ?? -0.5) + 0.5) / halfMs;
    },
    change: (where, flag, value) => {
      const changed = option(where, flag, value);
      return flag === INITIAL ? {} : changed;
    },
  };
}
