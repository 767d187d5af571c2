/** What a timer hands back, to be cleared with. Opaque: each `Timers` has its own. */
export type TimerHandle = unknown;

/** One-shot timers. Injected, so that tests move time by hand. */
export interface Timers {
  /** Calls back once, after `delayMs` (0 to `Number.MAX_SAFE_INTEGER`) milliseconds. Never keeps a process alive. */
  setTimeout(callback: () => void, delayMs: number): TimerHandle;
  /** Forgets a timer; one that has fired or been cleared is left in peace, and so is `undefined`. */
  clearTimeout(handle: TimerHandle): void;
}

/** Node cuts longer delays to 1 ms, with a warning: they are slept in pieces instead. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

interface SystemHandle {
  timer: NodeJS.Timeout;
}

/** The process's timers, unref'd: one that is still waiting does not keep the process alive. */
export const systemTimers: Timers = {
  setTimeout(callback, delayMs) {
    const handle = {} as SystemHandle;
    const sleep = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, LONGEST_DELAY_MS);
      handle.timer = setTimeout(() => {
        if (leftMs > stepMs) sleep(leftMs - stepMs);
        else callback();
      }, stepMs);
      handle.timer.unref();
    };
    sleep(delayMs);
    return handle;
  },
  clearTimeout(handle) {
    clearTimeout((handle as SystemHandle | undefined)?.timer);
  },
};
