import { DispatchQueue } from './dispatch-queue.js';
import { LoopMonitor } from './loop-monitor.js';

/** What there is once per thread: one loop, one watch over it, one queue in front of the handlers. */
export interface DispatchThread {
  readonly monitor: LoopMonitor;
  readonly queue: DispatchQueue;
}

const PER_THREAD = Symbol.for('@elimit/node-http/dispatch-thread@1');

/** This thread's monitor and queue, shared with another copy of the package. */
export function dispatchThread(): DispatchThread {
  return thread;
}

/** This thread's loop monitor: `watch(guard)` tells a guard of each turn. */
export function loopMonitor(): LoopMonitor {
  return thread.monitor;
}

function createThread(): DispatchThread {
  const monitor = new LoopMonitor();
  return { monitor, queue: new DispatchQueue(monitor) };
}

// made as the module loads, outside of every request's async context; nothing runs before it is used
const scope = globalThis as { [PER_THREAD]?: DispatchThread };
scope[PER_THREAD] ??= createThread();
const thread: DispatchThread = scope[PER_THREAD];
