export {
  type BreakerCallOptions,
  type BreakerEventName,
  type BreakerListener,
  type BreakerNotice,
  CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitBreakerSettings,
  createCircuitBreaker,
} from './admission/circuit-breaker.js';
export type { CallContext, ExecuteOptions } from './admission/execute.js';
export {
  type AcquireOptions,
  createGuard,
  type Guard,
  type GuardOptions,
  type GuardSettings,
} from './admission/guard.js';
export { createGuards, type Guards, type GuardsOptions } from './admission/guards.js';
export type { LoopTurn } from './admission/loop-rule.js';
export type { Entry, Permit, RevokeReason } from './admission/permit.js';
export { PRIORITIES, type Priority } from './admission/priority.js';
export type {
  AnyRateLimiter,
  AnyRateLimiterBase,
  RateDecision,
  RateLimiter,
  SharedRateLimiter,
  TakeOptions,
} from './admission/rate-contract.js';
export { createRateLimiter } from './admission/rate-limiter.js';
export {
  RATE_LIMITER_DEFAULTS,
  type RateLimiterOptions,
  type StorePolicy,
  windowOf,
} from './admission/rate-options.js';
export {
  createRegistry,
  processRegistry,
  type Registry,
  readSources,
  type SnapshotSource,
  type SourceReading,
  snapshotOf,
} from './admission/registry.js';
export {
  REJECTION_MESSAGE,
  REJECTION_STATUS,
  type RejectionBody,
  rejectionBody,
} from './admission/rejection.js';
export { ClosedError } from './admission/take-line.js';
export {
  type Breaker,
  type BreakerChange,
  type BreakerContext,
  ErrorCostBreaker,
  NO_TOKEN,
} from './breaker/breaker.js';
export {
  type BreakerCluster,
  type ClusterNode,
  createBreakerCluster,
  type Fellows,
  wellRatio,
} from './breaker/breaker-cluster.js';
export type { ErrorCostOptions, StrictBreakerOptions } from './breaker/breaker-options.js';
export {
  type Smoothing,
  StrictBreaker,
  type StrictBreakerState,
  type StrictWindowState,
} from './breaker/breaker-strict.js';
export {
  type ClusterRecovery,
  type ClusterRecoveryOptions,
  createClusterRecovery,
  ProportionalRecovery,
  StrictClusterRecovery,
  type StrictRecoveryState,
} from './breaker/cluster-recovery.js';
export { type BreakerOptions, createBreaker } from './breaker/create.js';
export { type Clock, systemClock } from './clock.js';
export {
  BRPC_CODES,
  BreakerOpenError,
  hasBrand,
  RejectedError,
  type Rejection,
  type RejectionReason,
  rejected,
  retryAfterSeconds,
  TimeoutError,
  withoutStack,
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
export { tell } from './events.js';
export type { AutoOptions, AutoSettings } from './limiter/auto.js';
export type {
  AutoDocumentedOptions,
  AutoLaw,
  AutoSharedOptions,
  AutoSharedSettings,
  AutoStrictOptions,
  AutoStrictSettings,
} from './limiter/auto-strict.js';
export type { ConstantLimiterOptions } from './limiter/constant.js';
export { createLimiter } from './limiter/create.js';
export type { GradientOptions, GradientSettings } from './limiter/gradient.js';
export {
  type ConfigurableLimiter,
  configurableOf,
  type DeadlineLimiter,
  type EstimatingLimiter,
  estimatesOf,
  type Limiter,
  type LimiterContext,
  type LimiterEstimates,
  type LimiterStep,
  type LimiterWarning,
  type StatefulLimiter,
  timeoutUsOf,
  type WarningLimiter,
  warningOf,
} from './limiter/limiter.js';
export {
  type LimiterFactory,
  type LimiterOptions,
  type MaxConcurrency,
  type ParsedMaxConcurrency,
  type ParsedValue,
  parseMaxConcurrency,
  registerLimiter,
  type TimeoutLimit,
} from './limiter/max-concurrency.js';
export type { TimeoutOptions, TimeoutSettings } from './limiter/timeout.js';
export type { TimeoutStrictOptions, TimeoutStrictSettings } from './limiter/timeout-strict.js';
export { LATENCY_RELATIVE_ERROR } from './metrics/latency-histogram.js';
export {
  METRICS,
  type MetricDefinition,
  type MetricSample,
  uniquelyNamed,
} from './metrics/names.js';
export type * from './metrics/snapshot.js';
export {
  booleanOf,
  functionOf,
  having,
  integerIn,
  knownKeys,
  located,
  numberIn,
  objectOf,
  oneOf,
  renamed,
  show,
  textOf,
} from './options.js';
export type { Outcome } from './outcome.js';
export { type Random, systemRandom } from './random.js';
export { Bucket } from './rate/bucket.js';
export type { BucketLaw } from './rate/law.js';
export {
  type RateQuota,
  type RateStore,
  type RateStoreContext,
  RateStoreError,
  type RateStoreSession,
  type StoreAnswer,
} from './rate/store.js';
export { TokenBucketLaw } from './rate/token-bucket.js';
export {
  SmoothBurstyLaw,
  SmoothLaw,
  SmoothWarmUpLaw,
  WarmUpCurve,
  WarmUpLaw,
} from './rate/warm-up.js';
export { systemTimers, type TimerHandle, type Timers } from './timers.js';
