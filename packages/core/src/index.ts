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
export {
  type EstimatingLimiter,
  estimatesOf,
  type Limiter,
  type LimiterEstimates,
} from './limiter/limiter.js';
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
