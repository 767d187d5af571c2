/**
 * Sums over the calls that ended in a stretch of time: how long they took (`latency`), and how many were in flight when
 * each began (`inflight`). Adding a call only adds; `measure` does the arithmetic. Times in microseconds, rates per microsecond.
 */
export class LoadWindow {
  startUs = 0;
  /** Calls that ended. */
  count = 0;
  admitted = 0;
  refused = 0;
  /** The arithmetic of a window is not for every call: its owner's next turn is at this count. */
  lookAtCount = 0;
  #firstRefusalUs = 0;
  #latency = 0;
  #latencySquared = 0;
  #inflight = 0;
  #inflightSquared = 0;
  #product = 0;

  // what `measure` found
  throughput = 0;
  meanInflight = 0;
  meanLatencyUs = 0;
  /** Standard deviation of the latency. */
  spreadUs = 0;
  #variance = 0;
  #covariance = 0;
  #covarianceError = 0;

  open(startUs: number): void {
    this.startUs = startUs;
    this.count = this.admitted = this.refused = this.lookAtCount = 0;
    this.#latency = this.#latencySquared = 0;
    this.#inflight = this.#inflightSquared = this.#product = 0;
  }

  add(latencyUs: number, inflight: number): void {
    this.count++;
    this.#latency += latencyUs;
    this.#latencySquared += latencyUs * latencyUs;
    this.#inflight += inflight;
    this.#inflightSquared += inflight * inflight;
    this.#product += inflight * latencyUs;
  }

  refuse(nowUs: number): void {
    if (this.refused++ === 0) this.#firstRefusalUs = nowUs;
  }

  /** Share of the calls that came and were refused. */
  get refusedShare(): number {
    return this.refused / Math.max(1, this.refused + this.admitted);
  }

  /** Asked at each refusal: true at the tenth, if the first came only in the second half of the window. */
  beganAtEase(nowUs: number): boolean {
    return this.refused === 10 && 2 * (nowUs - this.#firstRefusalUs) < nowUs - this.startUs;
  }

  /** At least one call, and some time. */
  measure(nowUs: number): void {
    const { count } = this;
    const latencyUs = this.#latency / count;
    const inflight = this.#inflight / count;
    this.throughput = count / (nowUs - this.startUs);
    this.meanInflight = inflight;
    this.meanLatencyUs = latencyUs;
    this.spreadUs = Math.sqrt(Math.max(0, this.#latencySquared / count - latencyUs * latencyUs));
    this.#variance = Math.max(1e-9, this.#inflightSquared / count - inflight * inflight);
    this.#covariance = this.#product / count - inflight * latencyUs;
    this.#covarianceError = this.spreadUs * Math.sqrt(this.#variance / count);
  }

  /** The slope of latency over in-flight × throughput: 0 if one more in flight costs no latency, 1 if it only waits. */
  get queueing(): number {
    return (this.throughput * this.#covariance) / this.#variance;
  }

  /** Standard error of `queueing`. */
  get queueingError(): number {
    return (this.throughput * this.#covarianceError) / this.#variance;
  }

  /**
   * Calls begun together end together, so a window of less than two latencies may hold one bunch more or less: its
   * latencies can be believed, its throughput cannot.
   */
  get isWhole(): boolean {
    return this.count >= 2 * this.throughput * this.meanLatencyUs;
  }

  /**
   * What part of the mean latency was waiting, if the queue was geometric: then throughput × covariance is its mean squared.
   * Bunches make queues that are not, so never more than what latency rises by from a call alone to the mean one.
   */
  meanWaitUs(): number {
    const squared = this.throughput * Math.max(0, this.#covariance - this.#covarianceError);
    const geometricUs = squared / (1 + Math.sqrt(squared)) / this.throughput;
    const slope = Math.max(0, this.#covariance) / this.#variance;
    return Math.min(geometricUs, slope * Math.max(0, this.meanInflight - 1));
  }

  /** The latency of calls that begin with so many in flight, on the straight line through this window; never less than the mean. */
  latencyAt(inflight: number): number {
    const slope = Math.max(0, this.#covariance) / (this.#variance + 1);
    return this.meanLatencyUs + slope * Math.max(0, inflight - this.meanInflight);
  }
}
