// what users of the module need from below, so that one import serves
export {
  type AnyRateLimiter,
  BreakerOpenError,
  CircuitBreaker,
  createGuard,
  createGuards,
  createRateLimiter,
  type Guard,
  type Guards,
  type MaxConcurrency as MaxConcurrencyValue,
  type Outcome,
  type Priority,
  type RateLimiter,
  RejectedError,
  type Rejection,
  rejectionBody,
} from '@elimit/core';
export {
  ClientGoneError,
  ipKey,
  type LimitTarget,
  type Protection,
  type ProtectOptions,
  protect,
  type RateLimitInfo,
  type RateRefusal,
  signalOf,
  timeLeftOf,
} from '@elimit/node-http';
export { Breaker, type BreakerDecoratorOptions, breakerOf } from './breaker.decorator.js';
export {
  HangUp,
  InjectBreaker,
  InjectGuard,
  InjectGuards,
  MaxConcurrency,
  RateLimit,
  SkipLimit,
  SkipRateLimit,
} from './decorators.js';
export { ElimitException, type ElimitExceptionOptions } from './elimit.exception.js';
export { ElimitGuard, limit } from './elimit.guard.js';
export { ElimitInterceptor } from './elimit.interceptor.js';
export { ElimitModule } from './elimit.module.js';
export type {
  ElimitAsyncOptions,
  ElimitModuleOptions,
  ElimitRootOptions,
  MaxConcurrencyOptions,
  MaxConcurrencyTarget,
  NestGuardOptions,
  NestLimitOptions,
  NestRateLimitOptions,
} from './options.js';
export { RateLimitGuard } from './rate-limit.guard.js';
export { breakerToken, ELIMIT_GUARDS, guardToken } from './tokens.js';
