import { systemTimers, type Timers } from '@elimit/core';

/**
 * Timers that look at the sockets once more before they fire. After the loop was blocked, timers run
 * first: without this a pause of our own would turn answers that have arrived long ago into timeouts.
 */
export const patientTimers: Timers = {
  setTimeout(callback, delayMs) {
    const handle: PatientHandle = { timer: undefined, immediate: undefined };
    handle.timer = systemTimers.setTimeout(() => {
      // not unref'd: such a one would not wake the loop, and it lives for one turn only
      handle.immediate = setImmediate(callback);
    }, delayMs);
    return handle;
  },
  clearTimeout(handle) {
    if (handle === undefined) return;
    const { timer, immediate } = handle as PatientHandle;
    systemTimers.clearTimeout(timer);
    clearImmediate(immediate);
  },
};

interface PatientHandle {
  timer: unknown;
  immediate: NodeJS.Immediate | undefined;
}
