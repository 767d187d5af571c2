import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Rejection } from '@elimit/core';
import { arrivalRecord } from './arrival.js';
import type { DispatchPermit, DispatchPriority, DispatchSnapshot } from './dispatch-queue.js';
import { dispatchThread } from './dispatch-thread.js';

/** How one call is to be dispatched. */
export interface DispatchOptions {
  /** `false`: the handler runs at once, whatever waits. @default true */
  readonly dispatch?: boolean | undefined;
  /** Most requests that may wait on this thread, 1 to 100 000. @default 1000 */
  readonly maxQueued?: number | undefined;
  /** Milliseconds from arrival after which starting is pointless. Absent: never. */
  readonly timeoutMs?: number | undefined;
  /** Higher classes start first; within a class, who came first. @default 'default' */
  readonly priority?: DispatchPriority | undefined;
}

/** What {@link DispatchOptions} are if nothing is said. */
export const DISPATCH_DEFAULTS = { dispatch: true, maxQueued: 1000 } as const;

/**
 * Starts the handler of an admitted request: at once if nothing can be waiting unseen, else from the
 * thread's dispatch queue, in the request's own async context.
 *
 * A request enters once, however many limiters it meets. A client that has left while its request waited
 * is skipped: `run` is not called and the permit ends `abandoned`. If the deadline has passed or the
 * queue is full, the permit is revoked and `onRefused` gets the rejection. What `run` throws is not caught.
 */
export function dispatch(
  req: IncomingMessage,
  res: ServerResponse,
  permit: DispatchPermit,
  run: () => void,
  onRefused: (rejection: Rejection) => void,
  options: DispatchOptions = DISPATCH_DEFAULTS,
): void {
  if (options.dispatch === false) {
    run();
    return;
  }
  const arrival = arrivalRecord(req);
  if (arrival.dispatched) {
    run();
    return;
  }
  arrival.dispatched = true;
  const { timeoutMs, priority = 'default', maxQueued = DISPATCH_DEFAULTS.maxQueued } = options;
  const deadlineUs =
    timeoutMs === undefined ? Number.POSITIVE_INFINITY : arrival.atUs + timeoutMs * 1_000;
  dispatchThread().queue.enter(req, res, permit, run, onRefused, deadlineUs, priority, maxQueued);
}

/** What has passed through this thread's dispatch queue. */
export function dispatchSnapshot(): DispatchSnapshot {
  return dispatchThread().queue.snapshot();
}
