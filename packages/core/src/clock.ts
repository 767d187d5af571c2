/** A monotonic clock. Durations are differences of two readings; the origin means nothing. */
export interface Clock {
  /** Whole microseconds since some fixed moment; never goes back. */
  nowUs(): number;
}

// `process` is an accessor on the global object: going through it at each reading cost as much as the reading
const { hrtime } = process;

/** The process's monotonic clock. Steps of the wall clock do not reach it. */
export const systemClock: Clock = {
  nowUs(): number {
    // half the cost of performance.now() on Node 20, and exact in integers; by index, since destructuring iterates
    const reading = hrtime();
    return reading[0] * 1_000_000 + ((reading[1] / 1000) | 0);
  },
};
