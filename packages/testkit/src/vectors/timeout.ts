import { type LimiterScript, replayLimiter } from './limiter-replay.js';
import { Difference, type VectorKind, type VectorRecord } from './vector-file.js';

const COLUMNS = {
  avg_latency_us: 'avgLatencyUs',
  win_start_us: 'windowStartUs',
  win_succ: 'successes',
  win_failed: 'failures',
  win_succ_us: 'successUs',
  win_failed_us: 'failureUs',
  last_sampling_us: 'lastSampleUs',
  reported_max_concurrency: 'maxConcurrency',
};

const CAP = 'timeout_cl_max_concurrency';
const TIMEOUT = 'timeout_cl_default_timeout_ms';
const INITIAL_US = 'timeout_cl_initial_avg_latency_us';
const OPTIONS = new Map([
  ['timeout_cl_sample_window_size_ms', 'sampleWindowMs'],
  ['timeout_cl_min_sample_count', 'minSampleCount'],
  ['timeout_cl_max_sample_count', 'maxSampleCount'],
  ['timeout_cl_sampling_interval_ms', 'samplingIntervalMs'],
  [INITIAL_US, 'initialAvgLatencyMs'],
  ['timeout_cl_enable_error_punish', 'errorPunish'],
  ['timeout_cl_fail_punish_ratio', 'failPunishRatio'],
  [TIMEOUT, 'timeoutMs'],
  [CAP, 'maxConcurrency'],
]);

/** Files of the strict `timeout` limiter. */
export const timeoutVectors: VectorKind = {
  kinds: ['timeout'],
  replay: (file) => replayLimiter(file, scriptOf),
};

function scriptOf(file: VectorRecord): LimiterScript {
  const options: Record<string, unknown> = {};
  const flags = file.record('flags');
  for (const flag of flags.names) Object.assign(options, optionOf('flags', flag, flags.any(flag)));
  if (file.has('conf') && file.any('conf') !== null) {
    const conf = file.record('conf');
    // brpc reports its process-wide setting, whatever cap the method has
    options.reportedMaxConcurrency = options.maxConcurrency ?? 100;
    options.timeoutMs = conf.number('timeout_ms');
    options.maxConcurrency = conf.number('max_concurrency');
  }
  return {
    columns: COLUMNS,
    limit: { type: 'timeout', strict: true, ...options },
    random: () => {
      throw new Difference('random', 'no draw', 'a draw');
    },
    // three settings are read at construction only; the cap is also what is reported, at any time
    change: (where, flag, value) => {
      const changed = optionOf(where, flag, value);
      if (flag === CAP) return { reportedMaxConcurrency: value };
      return flag === TIMEOUT || flag === INITIAL_US ? {} : changed;
    },
  };
}

function optionOf(where: string, flag: string, value: unknown): Record<string, unknown> {
  const name = OPTIONS.get(flag);
  if (name === undefined) throw new Difference(where, [...OPTIONS.keys()].join(', '), flag);
  return { [name]: flag === INITIAL_US ? Number(value) / 1000 : value };
}
