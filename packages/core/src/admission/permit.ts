import type { Rejection } from '../errors.js';
import type { Outcome } from '../outcome.js';
import type { Priority } from './priority.js';

/** Why an admission was taken back. */
export type RevokeReason = 'deadline' | 'queue' | 'concurrency';

/** Proof of admission: a call may run, and its slot is held until `release`. */
export interface Permit {
  readonly admitted: true;
  /** Calls in flight when this one was admitted, itself included. */
  readonly inflight: number;
  /**
   * Gives the slot back. Only the first call counts: later ones, and those after a `revoke`, do nothing.
   *
   * @param excludedUs - time that was the client's own (it was slow to send or to read), taken out of the latency; whole microseconds, 0 by default
   */
  release(outcome: Outcome, excludedUs?: number): void;
  /**
   * Takes the admission back, for a call that will not be served after all: its handler has not started, or (`concurrency`)
   * its body did not come while others waited for theirs. The slot returns, the call counts as refused, and the engines
   * learn nothing. After a `release` it only makes the rejection.
   */
  revoke(reason: RevokeReason): Rejection;
  /**
   * Ends the call of a client that left before its handler started: the slot returns, the call counts as
   * `abandoned`, and the engines learn nothing, since nothing was done for it. After a `release` it does nothing.
   */
  abandon(): void;
}

/** What a guard answers: go ahead, or no. */
export type Entry = Permit | Rejection;

/** What a permit needs of its guard. */
export interface Issuer {
  /** With its permit at server level, if it has one. */
  returned(permit: CallPermit, outcome: Outcome, excludedUs: number, nowUs?: number): void;
  revoked(permit: CallPermit, reason: RevokeReason, nowUs: number): Rejection;
  abandoned(permit: CallPermit, nowUs: number): void;
  nowUs(): number;
}

/** `epoch` of a permit that was let through by a dry run: it is counted apart, and no engine hears of it. */
export const LET_THROUGH = 0;
/** `epoch` of a permit that has been given back. */
export const GIVEN_BACK = -1;

/** The one object that a guarded call costs. */
export class CallPermit implements Permit {
  readonly admitted = true;
  /** The engine that admitted the call, by number; or one of the two constants above. */
  epoch: number;

  constructor(
    readonly issuer: Issuer,
    readonly inflight: number,
    /** Where its guard has noted when it arrived. */
    readonly place: number,
    epoch: number,
    readonly priority: Priority,
    /** The server-level permit of the same call. */
    readonly outer: CallPermit | undefined,
  ) {
    this.epoch = epoch;
  }

  release(outcome: Outcome, excludedUs = 0): void {
    if (this.epoch !== GIVEN_BACK) this.issuer.returned(this, outcome, excludedUs);
  }

  revoke(reason: RevokeReason): Rejection {
    const nowUs = this.issuer.nowUs();
    const { outer } = this;
    if (outer !== undefined && outer.epoch !== GIVEN_BACK) {
      outer.issuer.revoked(outer, reason, nowUs);
    }
    return this.issuer.revoked(this, reason, nowUs);
  }

  abandon(): void {
    if (this.epoch === GIVEN_BACK) return;
    const nowUs = this.issuer.nowUs();
    this.issuer.abandoned(this, nowUs);
    const { outer } = this;
    if (outer !== undefined && outer.epoch !== GIVEN_BACK) outer.issuer.abandoned(outer, nowUs);
  }
}
