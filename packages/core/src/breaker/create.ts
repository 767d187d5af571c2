import { booleanOf, objectOf } from '../options.js';
import { type Breaker, type BreakerContext, ErrorCostBreaker } from './breaker.js';
import type { ErrorCostOptions, StrictBreakerOptions } from './breaker-options.js';
import { type Smoothing, StrictBreaker } from './breaker-strict.js';

/** A breaker's numbers: the default grade's, or with `strict: true` brpc's. */
export type BreakerOptions =
  | (ErrorCostOptions & { readonly strict?: false | undefined })
  | (StrictBreakerOptions & {
      readonly strict: true;
      /** For conformance runs: the two factors `epsilon^(1/size)` as somebody else computed them. */
      readonly smooth?: Smoothing | undefined;
    });

/** The engine for one target. Throws on unknown keys and bad values. */
export function createBreaker(options: BreakerOptions = {}, context: BreakerContext = {}): Breaker {
  const { strict, ...numbers } = objectOf('breaker', options);
  if (strict === undefined || !booleanOf('breaker.strict', strict)) {
    return new ErrorCostBreaker(numbers, context);
  }
  const { smooth, ...rest } = numbers as StrictBreakerOptions & { smooth?: Smoothing };
  return new StrictBreaker(rest, { ...context, smooth });
}
