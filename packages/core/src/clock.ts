/** A monotonic clock. Durations are differences of two readings; the origin means nothing. */
export interface Clock {
  /** Whole microseconds since some fixed moment; never goes back. */
  nowUs(): number;
}

/** The process's monotonic clock. Steps of the wall clock do not reach it. */
export const systemClock: Clock = {
  nowUs(): number {
    return Math.trunc(performance.now() * 1000);
  },
};
