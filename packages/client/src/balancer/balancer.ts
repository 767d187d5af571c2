/** What a balancer sees of an endpoint. */
export interface Candidate {
  /** Its origin. */
  readonly origin: string;
  /** As given in the list; 1 by default. */
  readonly weight: number;
  /** Tries on it now, from all channels that share it. */
  readonly inflight: number;
  /**
   * A latency to compare by, in microseconds; 0 before the first answer. It jumps up at once and comes
   * down slowly, errors raise it, refusals leave it as it is.
   */
  readonly loadLatencyUs: number;
}

/** Chooses who is next. Users bring their own by this contract. */
export interface Balancer {
  /**
   * @param candidates - endpoints that can be used now, at least one, in the order of the list
   * @returns one of them
   */
  pick(candidates: readonly Candidate[]): Candidate;
}
