import { decimal, integer, live, type OptionRules, yesOrNo } from '../option-rules.js';

// What brpc's two adaptive limiters have in common.

/** How samples are gathered. */
export const SAMPLING_RULES: OptionRules<{
  sampleWindowMs: number;
  minSampleCount: number;
  maxSampleCount: number;
  samplingIntervalMs: number;
}> = {
  sampleWindowMs: live(1000, integer(1)),
  minSampleCount: live(100, integer(1)),
  maxSampleCount: live(200, integer(1)),
  samplingIntervalMs: live(0.1, decimal(0)),
};

/** What failures cost. */
export const PUNISH_RULES: OptionRules<{ errorPunish: boolean; failPunishRatio: number }> = {
  errorPunish: live(true, yesOrNo),
  failPunishRatio: live(1, decimal(0)),
};
