import type { FlagSnapshot } from '@elimit/core';

/**
 * What the options of our own parts are for. An option that several engines have means the same in each, so its name is
 * enough. They stand here, and not in the engines, which servers load that have no pages.
 */
const MEANINGS: Readonly<Record<string, string>> = {
  // guards
  limit: 'the max-concurrency value',
  dryRun: 'decides and counts, but lets every call through',
  initialMaxConcurrency: 'the limit at the start',
  minConcurrency: 'the limit never falls below this',
  maxConcurrency: 'the limit never rises above this',
  sampleWindowMs: 'length of a sample window, ms',
  minSampleCount: 'the fewest samples that make a window',
  maxSampleCount: 'so many samples end a window early',
  samplingIntervalMs: 'at most one sample per interval, ms',
  queueSize: 'calls that may wait; -1, in gradient: the square root of the limit',
  queueMs: 'no more may wait than are worked off in this time, ms',
  remeasureIntervalMs: 'how long the no-load latency is believed before it is measured anew, ms',
  remeasureReduceRatio: 'a re-measurement lowers the limit to this share',
  safety: 'share of the remaining time that a predicted completion may take',
  expireMs: 'estimates that no call has confirmed for so long are dropped, ms',
  windows: 'how many recent windows the minimum latency is taken over',
  emaAlpha: 'smoothing of the minimum latency; a tenth of it smooths the peak rate',
  errorPunish: 'failures count as samples and add their time',
  failPunishRatio: 'factor on the time of failures',
  errorRatePunishThreshold: 'share of failures that costs nothing; in force between 0 and 1',
  maxExploreRatio: 'upper bound, and start, of the headroom',
  minExploreRatio: 'lower bound of the headroom, and the tolerance in the test for load',
  exploreStep: 'step of the headroom per window',
  latencyFluctuationCorrection: 'factor on the latency tolerance',
  alpha: 'headroom of the documented law',
  initialAvgLatencyMs: 'the average latency before the first window, ms',
  reportedMaxConcurrency: 'what is reported as maxConcurrency; -1: the cap',
  // guards and breakers
  timeoutMs: 'time a call may take, ms',
  // breakers
  shortWindowSize: 'calls the short window remembers',
  longWindowSize: 'calls the long window remembers',
  shortWindowErrorRatio: 'share of failures the short window tolerates',
  longWindowErrorRatio: 'share of failures the long window tolerates',
  minFailedLatencyMultiple: 'least that one failure costs, in average latencies',
  maxFailedLatencyMultiple: 'most that one failure costs, in average latencies',
  minErrorCostMs: 'cost below this becomes 0 with the next success, ms',
  epsilon: 'share of the cost that a window of successes leaves',
  costHalfLifeMs: 'time in which half of the cost is forgotten, ms',
  commonFaultMs: 'time for which nodes that fail together are excused, ms',
  minCalls: 'calls below which errors open nothing',
  minIsolationMs: 'shortest isolation, ms',
  maxIsolationMs: 'longest isolation, ms',
  relapseMs: 'good time that halves what isolations have grown to, ms',
  isolationJitterRatio: 'how far chance moves the length of an isolation',
  halfOpenWindowSize: 'good calls that end half-open',
  trialTimeoutMs: 'time after which a trial call counts as failed, ms',
  rampMs: 'longest ramp from a tenth of the calls to all of them, ms',
  // rate limiters
  rate: 'tokens per second',
  burst: 'the most tokens saved',
  warmUpMs: 'time from cold to the full rate, ms',
  coldFactor: 'what a token costs when cold, in stable prices',
  startup: 'a larger burst for the first moments',
  strict: 'Guava’s smooth limiter to the microsecond',
  maxKeys: 'the most keys held in memory',
  storePolicy: 'what checks do while the store is down',
  storeTimeoutMs: 'how long one check waits for the store, ms',
  front: 'a looser limit of this process, asked first',
  revealKeys: 'puts keys into events as they are',
};

/** What an option is for: in its own words, or in ours; nothing if neither has any. */
export function meaningOf({ name, meaning }: FlagSnapshot): string {
  return meaning ?? (Object.hasOwn(MEANINGS, name) ? (MEANINGS[name] as string) : '');
}
