export { arrivalOf } from './arrival.js';
export { DEADLINE_HEADERS, timeoutOf } from './deadline-headers.js';
export { DISPATCH_DEFAULTS, type DispatchOptions, dispatch, dispatchSnapshot } from './dispatch.js';
export type { DispatchPermit, DispatchPriority, DispatchSnapshot } from './dispatch-queue.js';
export { loopMonitor } from './dispatch-thread.js';
export type { LoopListener, LoopMonitor } from './loop-monitor.js';
export { type WriteRejectionOptions, writeRejection } from './write-rejection.js';
