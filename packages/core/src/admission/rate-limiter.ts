import type { RateStore } from '../rate/store.js';
import { LocalRateLimiter } from './local-rate-limiter.js';
import type { AnyRateLimiter, RateLimiter, SharedRateLimiter } from './rate-contract.js';
import { type RateLimiterOptions, resolveRateLimiterOptions } from './rate-options.js';
import { StoreRateLimiter } from './store-rate-limiter.js';

/**
 * A token bucket on a shared store, for one thing or by key: one limit over many processes.
 *
 * @throws TypeError, RangeError for options that are unknown, out of range or exclude each other
 */
export function createRateLimiter(
  options: RateLimiterOptions & { readonly store: RateStore },
): SharedRateLimiter;
/**
 * A token bucket by the clock, in this process, for one thing or by key.
 *
 * @throws TypeError, RangeError for options that are unknown, out of range or exclude each other
 */
export function createRateLimiter(
  options: RateLimiterOptions & { readonly store?: undefined },
): RateLimiter;
/**
 * Either, by whether there is a `store`.
 *
 * @throws TypeError, RangeError for options that are unknown, out of range or exclude each other
 */
export function createRateLimiter(options: RateLimiterOptions): AnyRateLimiter;
export function createRateLimiter(options: RateLimiterOptions): AnyRateLimiter {
  const resolved = resolveRateLimiterOptions(options);
  const limiter =
    resolved.store === undefined
      ? new LocalRateLimiter(resolved)
      : new StoreRateLimiter({ ...resolved, store: resolved.store });
  resolved.registry?.add(limiter);
  return limiter;
}
