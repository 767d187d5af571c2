import {
  changeByRules,
  flagsByRules,
  integer,
  live,
  type OptionRules,
  resolveByRules,
} from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import type { ConfigurableLimiter } from './limiter.js';

/** Options of `{ type: 'constant' }`. */
export interface ConstantLimiterOptions {
  /** The most calls in flight, at least 1. */
  readonly maxConcurrency: number;
}

const RULES: OptionRules<ConstantLimiterOptions> = {
  maxConcurrency: live(1, integer(1)),
};

/** Checks the options of a {@link ConstantLimiter}; `maxConcurrency` has no default. */
export function resolveConstantOptions(options: object): ConstantLimiterOptions {
  const { maxConcurrency } = resolveByRules('constant', options, RULES);
  // a limit nobody chose would be a guess: the check refuses what is absent
  RULES.maxConcurrency.check(
    'constant.maxConcurrency',
    (options as Partial<ConstantLimiterOptions>).maxConcurrency,
  );
  return { maxConcurrency };
}

/** A fixed limit. Learns nothing. */
export class ConstantLimiter implements ConfigurableLimiter {
  #options: ConstantLimiterOptions;

  constructor(options: ConstantLimiterOptions) {
    this.#options = options;
  }

  get maxConcurrency(): number {
    return this.#options.maxConcurrency;
  }

  admits(inflight: number): boolean {
    return inflight <= this.#options.maxConcurrency;
  }

  started(): void {}
  refused(): void {}
  record(): void {}

  configure(options: Readonly<Record<string, unknown>>): void {
    this.#options = changeByRules('constant', this.#options, options, RULES);
  }

  flags(): readonly FlagSnapshot[] {
    return flagsByRules(this.#options, RULES);
  }
}
