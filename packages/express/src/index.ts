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
  type RateLimitInfo,
  type RateLimitOptions,
  type RateRefusal,
  signalOf,
  timeLeftOf,
  writeRejection,
} from '@elimit/node-http';
export { limit } from './limit.js';
export type { Middleware } from './middleware.js';
export { protect } from './protect.js';
export { type RateLimitHandler, rateLimit } from './rate-limit.js';
