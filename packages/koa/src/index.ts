// what users of the middleware need from below, so that one import serves
export {
  type AnyRateLimiter,
  createGuard,
  createGuards,
  createRateLimiter,
  type Guard,
  type Guards,
  type MaxConcurrency,
  type Outcome,
  type Priority,
  type RateLimiter,
  RejectedError,
  type Rejection,
  type SharedRateLimiter,
} from '@elimit/core';
export {
  ClientGoneError,
  type EndingOptions,
  ipKey,
  type LimitOptions,
  type LimitTarget,
  type Protection,
  type ProtectOptions,
  protect,
  type RateLimitInfo,
  type RateLimitOptions,
  type RateRefusal,
  writeRejection,
} from '@elimit/node-http';
export { signalOf, timeLeftOf } from './context-of.js';
export { type KoaLimitOptions, limit } from './limit.js';
export { type KoaRateLimitOptions, type RateLimitMiddleware, rateLimit } from './rate-limit.js';
