export {
  createGuard,
  createGuards,
  type Guard,
  type Guards,
  type MaxConcurrency,
  type Outcome,
  type Priority,
  RejectedError,
  type Rejection,
} from '@elimit/core';
export {
  type EndingOptions,
  type LimitOptions,
  type LimitTarget,
  signalOf,
  writeRejection,
} from '@elimit/node-http';
export { limit } from './limit.js';
