export {
  createRegistry,
  processRegistry,
  type Registry,
  type SnapshotSource,
} from './admission/registry.js';
export {
  REJECTION_MESSAGE,
  REJECTION_STATUS,
  type RejectionBody,
  rejectionBody,
  retryAfterSeconds,
} from './admission/rejection.js';
export { type Clock, systemClock } from './clock.js';
export {
  BRPC_CODES,
  BreakerOpenError,
  RejectedError,
  type Rejection,
  type RejectionReason,
  rejected,
  TimeoutError,
} from './errors.js';
export type {
  BreakerEvent,
  ConfigureEvent,
  ElimitEvent,
  ModeEvent,
  OnEvent,
  RejectEvent,
  WarningEvent,
} from './events.js';
export type { AutoDocumentedOptions, AutoStrictOptions } from './limiter/auto-strict.js';
export type { ConstantLimiterOptions } from './limiter/constant.js';
export { createLimiter } from './limiter/create.js';
export type { GradientOptions } from './limiter/gradient.js';
export {
  type ConfigurableLimiter,
  configurableOf,
  type EstimatingLimiter,
  estimatesOf,
  type Limiter,
  type LimiterContext,
  type LimiterEstimates,
  type LimiterStep,
  type StatefulLimiter,
} from './limiter/limiter.js';
export {
  type LimiterFactory,
  type LimiterOptions,
  type MaxConcurrency,
  type ParsedMaxConcurrency,
  parseMaxConcurrency,
  registerLimiter,
  type TimeoutLimit,
} from './limiter/max-concurrency.js';
export type { TimeoutStrictOptions } from './limiter/timeout-strict.js';
export type * from './metrics/snapshot.js';
export {
  booleanOf,
  functionOf,
  integerIn,
  knownKeys,
  numberIn,
  objectOf,
  oneOf,
  show,
  textOf,
} from './options.js';
export type { Outcome } from './outcome.js';
export { type Random, systemRandom } from './random.js';
export { systemTimers, type TimerHandle, type Timers } from './timers.js';
