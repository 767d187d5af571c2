import type { TimerHandle, Timers } from '@elimit/core';

/** How long one look may take: the system's resolver asks twice, for 5 s each. */
const LOOK_MS = 10_000;

/** What `look` finds, or an error when it takes longer than 10 s: one that never ends would be the last one. */
export async function inTime<T>(of: string, timers: Timers, look: () => Promise<T>): Promise<T> {
  let timer: TimerHandle;
  const late = new Promise<never>((_resolve, reject) => {
    timer = timers.setTimeout(() => reject(lateness(of)), LOOK_MS);
  });
  try {
    return await Promise.race([look(), late]);
  } finally {
    timers.clearTimeout(timer);
  }
}

/**
 * What `look` finds, however long it takes; after 10 s it is told that it is late. For what Node asks of the system: that
 * cannot be given up, and each further one would take a thread until none is left.
 */
export async function inItsTime<T>(
  of: string,
  timers: Timers,
  look: () => Promise<T>,
  late: (error: Error) => void,
): Promise<T> {
  const timer = timers.setTimeout(() => late(lateness(of)), LOOK_MS);
  try {
    return await look();
  } finally {
    timers.clearTimeout(timer);
  }
}

function lateness(of: string): Error {
  return new Error(`${of} took over ${LOOK_MS} ms`);
}
