import {
  createLimiter,
  type Limiter,
  type MaxConcurrency,
  parseMaxConcurrency,
  type Random,
} from '@elimit/core';
import { type Admission, LimiterAdmission } from './admission.js';
import { GuardAdmission } from './guard-admission.js';
import type { Scenario } from './scenario.js';
import { Gradient2Limiter } from './yardsticks/gradient2.js';
import { VegasLimiter } from './yardsticks/vegas.js';

/** The limit that every adaptive engine starts with here; what `frozen` stays at. */
export const START = 20;

/** What stands in the tables: engines and yardsticks. The first is the one that must hold. */
export const ARMS = [
  'auto',
  'none',
  'best fixed',
  'strict auto',
  'timeout',
  'gradient',
  'vegas',
  'gradient2',
] as const;
/** Arms that must fail, to show that the pass marks can be failed. */
export const CONTROLS = ['always admit', 'always refuse', 'frozen'] as const;
export type ArmName = (typeof ARMS)[number] | (typeof CONTROLS)[number];

export interface ArmSetting {
  readonly arm: ArmName;
  /** Start value, for `auto`. */
  readonly start?: number;
  /** The limit, for `best fixed`. */
  readonly fixed?: number;
}

/** The admission of an arm for one run of a scenario. */
export function admissionOf(setting: ArmSetting, scenario: Scenario) {
  return (random: Random, startUs: number): Admission => {
    const value = limitOf(setting, scenario, random);
    // classes are the guard's; for all other calls it does what the bare engine does, as a test shows
    if (scenario.classes !== undefined) return new GuardAdmission(value, random, startUs);
    return new LimiterAdmission(
      createLimiter(parseMaxConcurrency(value), { random, nowUs: startUs }),
    );
  };
}

function limitOf(
  { arm, start, fixed }: ArmSetting,
  scenario: Scenario,
  random: Random,
): MaxConcurrency {
  switch (arm) {
    case 'auto':
      return { type: 'auto', initialMaxConcurrency: start ?? START };
    case 'none':
    case 'always admit':
      return 'unlimited';
    case 'best fixed':
      return fixed ?? START;
    case 'frozen':
      return START;
    case 'strict auto':
      return { type: 'auto', strict: true, minConcurrency: 1 };
    case 'timeout':
      return { timeoutMs: longestDeadlineMs(scenario), maxConcurrency: 10_000 };
    case 'gradient':
      return 'gradient';
    case 'vegas':
      return new VegasLimiter(random);
    case 'gradient2':
      return new Gradient2Limiter();
    case 'always refuse':
      return REFUSES_ALL;
  }
}

function longestDeadlineMs({ deadlineMs }: Scenario): number {
  return typeof deadlineMs === 'number' ? deadlineMs : Math.max(...deadlineMs.map((one) => one.ms));
}

const REFUSES_ALL: Limiter = {
  maxConcurrency: 0,
  admits: () => false,
  started() {},
  refused() {},
  record() {},
};
