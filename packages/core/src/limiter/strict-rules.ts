import { decimal, integer, live, type OptionRules, yesOrNo } from './option-rules.js';

// What brpc's two adaptive limiters have in common.

/** How samples are gathered. */
export const SAMPLING_RULES: OptionRules<{
  sampleWindowMs: number;
  minSampleCount: number;
  maxSampleCount: number;
  samplingIntervalMs: number;
}> = {
  sampleWindowMs: live(1000, integer(1), 'length of a sample window, ms'),
  minSampleCount: live(100, integer(1), 'fewer samples at the end of a window: thrown away'),
  maxSampleCount: live(200, integer(1), 'so many samples end a window early'),
  samplingIntervalMs: live(0.1, decimal(0), 'at most one sample per interval, ms'),
};

/** What failures cost. */
export const PUNISH_RULES: OptionRules<{ errorPunish: boolean; failPunishRatio: number }> = {
  errorPunish: live(true, yesOrNo, 'failures count as samples and add their time'),
  failPunishRatio: live(1, decimal(0), 'factor on the time of failures'),
};
