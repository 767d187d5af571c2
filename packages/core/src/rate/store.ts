import { hasBrand } from '../errors.js';
import type { Random } from '../random.js';

/** What a key may use: `rate` tokens a second, `burst` of them saved. */
export interface RateQuota {
  readonly rate: number;
  readonly burst: number;
}

/** What a store says to one request for tokens. */
export interface StoreAnswer {
  readonly granted: boolean;
  /** Tokens left for the key as far as the store has told, at least 0. */
  readonly remaining: number;
  /** 0 if granted, else microseconds until asking again makes sense; `Infinity` for never. */
  readonly waitUs: number;
  /** Microseconds until the key's bucket is full again. */
  readonly fullInUs: number;
}

/**
 * One limiter's dealings with a shared store. A store counts with one clock for all processes (its
 * own), so that no second is paid for twice, and forgets a key by itself once its bucket is full.
 *
 * `take` must be atomic over all processes. It may answer at once from tokens it leased earlier. It
 * rejects with a {@link RateStoreError} when it cannot tell; how long that may take is the
 * limiter's business, which goes on without it after `storeTimeoutMs` and gives back what comes late.
 */
export interface RateStoreSession {
  take(key: string, n: number, quota: RateQuota): StoreAnswer | Promise<StoreAnswer>;
  /** Puts `n` back, never above the burst. Best effort: never throws, tells nothing. */
  refund(key: string, n: number, quota: RateQuota): void;
  /** Makes the key's bucket new, for all processes. */
  reset(key: string): Promise<void>;
  /** Resolves if the store takes writes; rejects if not. Takes nothing from anyone. */
  probe(): Promise<void>;
  /** Sessions, one for each limiter of a process, that share the quota, as last heard; 1 if never. */
  readonly holders: number;
  /** Gives back what is leased and ends timers. The store's connection stays the user's. */
  close(): Promise<void>;
}

/** What a session is opened with: the limiter's name, time and chance. Engines hold none of their own. */
export interface RateStoreContext {
  /** The limiter's name: part of every key, so that two limiters on one store do not meet. */
  readonly name: string;
  readonly clock: { nowUs(): number };
  readonly timers: {
    setTimeout(callback: () => void, delayMs: number): unknown;
    clearTimeout(handle: unknown): void;
  };
  readonly random: Random;
}

/** A place where many processes count together. */
export interface RateStore {
  open(context: RateStoreContext): RateStoreSession;
}

const STORE_FAILED: unique symbol = Symbol.for('@elimit/core/RateStoreError') as never;

/** A store could not tell. */
export class RateStoreError extends Error {
  override readonly name = 'RateStoreError';
  readonly code = 'ERR_STORE';
  readonly [STORE_FAILED] = true;

  /** @param scope - `key`: only this key is concerned (something else lives there); `store`: all of them are */
  constructor(
    message: string,
    readonly scope: 'key' | 'store',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** True for a `RateStoreError` of this or another copy of the package. */
  static is(value: unknown): value is RateStoreError {
    return hasBrand(value, STORE_FAILED);
  }
}
