import type { FlagSnapshot, RateLimiterSnapshot } from '../metrics/snapshot.js';
import type { SnapshotSource } from './registry.js';

/** The answer to one request for tokens, as plain data. */
export interface RateDecision {
  readonly granted: boolean;
  /** True if the tokens were taken. A dry run grants what it takes nothing for: such a call has nothing to refund. */
  readonly taken: boolean;
  /** Tokens left, at least 0, fractions included. */
  readonly remaining: number;
  /** The most that could ever be left. */
  readonly burst: number;
  /** Milliseconds until the bucket is full again; `Infinity` while the rate is 0. */
  readonly resetMs: number;
  /** 0 if granted, else milliseconds until asking again makes sense; `Infinity` for never. */
  readonly retryAfterMs: number;
}

/** Options of `take`. */
export interface TakeOptions {
  /** What is counted separately; without it, the limiter's one bucket. */
  readonly key?: string | undefined;
  /** Ends the wait; the promise rejects with its reason and the place in the line is free. */
  readonly signal?: AbortSignal | undefined;
  /** The longest wait, in milliseconds; rejects with a `RejectedError`, at once where it is known before. @default no end */
  readonly maxWaitMs?: number | undefined;
}

/** What both forms of a rate limiter share. `n` is a finite number of at least 0; 0 is always granted. */
export interface AnyRateLimiterBase extends SnapshotSource {
  readonly name: string;
  readonly rate: number;
  readonly burst: number;
  /**
   * Resolves once `n` tokens are taken, in the order of the calls for one key; in a dry run at once. On a store those
   * who wait in this process keep their order; others, and `tryTake`, may come before them.
   *
   * @throws RangeError if `n` exceeds the burst: it would wait for ever
   * @throws RejectedError if it would wait, or has waited, longer than `maxWaitMs`
   * @throws ClosedError if the limiter is closed while it waits, or was before it would; on a store, before it asks
   * @throws the signal's reason if that aborts before the tokens are taken
   * @throws TypeError, RangeError for an `n` or options that are none, or out of range
   */
  take(n?: number, options?: TakeOptions): Promise<void>;
  /** Puts `n` back, never above the burst: for a call that turned out not to count. Only what was taken: see {@link RateDecision.taken}. */
  refund(n?: number, key?: string): void;
  /** Tokens per second from now on; 0 stops. Time until now is paid at the old rate. */
  setRate(rate: number): void;
  /** The most tokens saved from now on; what is above goes, growing adds nothing. It ends a `startup`. */
  setBurst(burst: number): void;
  snapshot(): RateLimiterSnapshot;
  flags(): FlagSnapshot[];
  /** Live: `rate`, `burst` (or `limit`, `windowMs`), `dryRun`, `storePolicy`, `storeTimeoutMs`. */
  configure(partial: Readonly<Record<string, unknown>>): void;
  /** Refuses those who wait (`ERR_CLOSED`), gives leased tokens back, leaves the registry. Twice does no harm. */
  close(): Promise<void>;
}

/** A rate limiter of this process: answers at once. */
export interface RateLimiter extends AnyRateLimiterBase {
  /** Takes `n` tokens if they are there, else nothing. Never waits; refused while others wait in `take`. */
  tryTake(n?: number, key?: string): boolean;
  /** `tryTake` that also tells what is left and when to come back. */
  check(n?: number, key?: string): RateDecision;
  /** Takes `n` at once, on credit: milliseconds to wait before using them, `Infinity` (and nothing taken) for never. */
  reserve(n?: number, key?: string): number;
  /** Tokens that could be taken now; below 0 while reservations are paid off. */
  tokens(key?: string): number;
  /** Makes a key's bucket new. */
  reset(key?: string): void;
}

/** A rate limiter on a shared store: an answer may take a round trip, at most `storeTimeoutMs`. */
export interface SharedRateLimiter extends AnyRateLimiterBase {
  tryTake(n?: number, key?: string): Promise<boolean>;
  /** At once where a lease, a known refusal or the store policy decides; else a promise. Never rejects. */
  check(n?: number, key?: string): RateDecision | Promise<RateDecision>;
  /** Makes a key's bucket new in the store. */
  reset(key?: string): Promise<void>;
}

/** Either form, for code that takes what it is given. */
export type AnyRateLimiter = RateLimiter | SharedRateLimiter;
