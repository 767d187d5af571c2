export { arrivalOf } from './arrival.js';
export { DEADLINE_HEADERS, timeoutOf } from './deadline-headers.js';
export { DISPATCH_DEFAULTS, type DispatchOptions, dispatch, dispatchSnapshot } from './dispatch.js';
export type { DispatchPermit, DispatchPriority, DispatchSnapshot } from './dispatch-queue.js';
export { loopMonitor } from './dispatch-thread.js';
export { endCalls, markRefused } from './ending.js';
export type { EndingOptions } from './ending-options.js';
export { giveExpressKeysEarly } from './express-keys.js';
export type { LimitOptions } from './limit-options.js';
export {
  isGuards,
  isReadyMade,
  type LimitAdapter,
  type LimitTarget,
  type LimitVerdict,
  type Next,
  RequestLimit,
  skips,
} from './limit-request.js';
export type { LoopHandle, LoopHooks, LoopListener, LoopMonitor } from './loop-monitor.js';
export { type Protection, type ProtectOptions, protect } from './protect.js';
export type { RateHeaderDraft } from './rate-headers.js';
export { ipKey } from './rate-limit-key.js';
export type {
  Async,
  RateCall,
  RateLimitInfo,
  RateLimitOptions,
  RateMessage,
  RateRefusal,
} from './rate-limit-options.js';
export { type RateLimitAdapter, type RateVerdict, RequestRateLimit } from './rate-limit-request.js';
export type { ProxySetting, ProxyTrust } from './rate-limit-warnings.js';
export { giveEarly, type KeyGiver } from './request-keys.js';
export { ClientGoneError, signalOf } from './signal-of.js';
export { timeLeftOf } from './time-left.js';
export { type WriteRejectionOptions, writeRejection } from './write-rejection.js';
