import type { TimerHandle, Timers } from '@elimit/core';

/** How long one look may take: the system's resolver asks twice, for 5 s each. */
const LOOK_MS = 10_000;

/** What `look` finds, or an error when it takes longer than 10 s: one that never ends would be the last one. */
export async function inTime<T>(of: string, timers: Timers, look: () => Promise<T>): Promise<T> {
  let timer: TimerHandle;
  const late = new Promise<never>((_resolve, reject) => {
    timer = timers.setTimeout(() => reject(new Error(`${of} took over ${LOOK_MS} ms`)), LOOK_MS);
  });
  try {
    return await Promise.race([look(), late]);
  } finally {
    timers.clearTimeout(timer);
  }
}
