import { decimal, integer, live, type OptionRules, yesOrNo } from '../option-rules.js';
import type { SampleWindowRules } from '../sampling/sample-window.js';

// What brpc's two adaptive limiters have in common.

interface SamplingSettings {
  readonly sampleWindowMs: number;
  readonly minSampleCount: number;
  readonly maxSampleCount: number;
  readonly samplingIntervalMs: number;
}

/** How samples are gathered. */
export const SAMPLING_RULES: OptionRules<SamplingSettings> = {
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

/** When a window of samples ends. */
export function windowRules(settings: SamplingSettings): SampleWindowRules {
  return {
    windowUs: settings.sampleWindowMs * 1000,
    minCount: settings.minSampleCount,
    maxCount: settings.maxSampleCount,
  };
}
