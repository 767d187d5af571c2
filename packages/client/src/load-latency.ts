/** How slowly a bad latency is forgotten, in microseconds. */
const TAU_US = 10_000_000;
const LONGEST_US = 30_000_000;

/**
 * A latency to balance by, after brpc's p2c: jumps up at once, comes down over ten seconds, also while
 * idle, so that an endpoint nobody picks is tried again.
 */
export class LoadLatency {
  #valueUs = 0;
  #atUs = 0;

  /** In microseconds; 0 before the first answer. */
  read(nowUs: number): number {
    return this.#valueUs * this.#left(nowUs);
  }

  answered(latencyUs: number, nowUs: number): void {
    const left = this.#left(nowUs);
    const agedUs = this.#valueUs * left;
    this.#set(latencyUs > agedUs ? latencyUs : agedUs * left + latencyUs * (1 - left), nowUs);
  }

  /** A failure is worse than slow: as the longest it could have taken, or twice the present value. */
  failed(latencyUs: number, allowedUs: number, nowUs: number): void {
    this.#set(Math.max(latencyUs, allowedUs, 2 * this.read(nowUs)), nowUs);
  }

  #left(nowUs: number): number {
    return Math.exp((this.#atUs - nowUs) / TAU_US);
  }

  #set(valueUs: number, nowUs: number): void {
    this.#valueUs = Math.min(LONGEST_US, valueUs);
    this.#atUs = nowUs;
  }
}
