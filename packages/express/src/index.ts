// what users of the middleware need from below, so that one import serves
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
  ClientGoneError,
  type EndingOptions,
  type LimitOptions,
  type LimitTarget,
  type Protection,
  type ProtectOptions,
  protect,
  signalOf,
  writeRejection,
} from '@elimit/node-http';
export { limit } from './limit.js';
