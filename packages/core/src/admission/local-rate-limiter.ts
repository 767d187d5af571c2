import type { Clock } from '../clock.js';
import type { FlagSnapshot, RateLimiterSnapshot } from '../metrics/snapshot.js';
import { show } from '../options.js';
import { Bucket } from '../rate/bucket.js';
import { type BucketLaw, refillUs } from '../rate/law.js';
import { MemoryStore, type Slot } from '../rate/memory-store.js';
import { costOf, keyOf, RateBook } from './rate-book.js';
import type { RateDecision, RateLimiter, TakeOptions } from './rate-contract.js';
import {
  burstOf,
  lawOf,
  type ResolvedRateOptions,
  rateOf,
  resolveRateChange,
} from './rate-options.js';
import { closed, maxWaitOf, TakeLine, tooLong } from './take-line.js';

/** The one bucket's line stands under this; keys are strings. */
type LineKey = string | undefined;
/** In place of a slot: the one bucket of a limiter without keys. */
const ONE = -1 satisfies Slot;

/** A rate limiter of this process. Made by `createRateLimiter`. */
export class LocalRateLimiter implements RateLimiter {
  // set once
  readonly #options: ResolvedRateOptions;
  readonly #clock: Clock;
  readonly #book: RateBook;
  readonly #law: BucketLaw;
  readonly #one: Bucket;
  readonly #keyed: MemoryStore;
  // moves with waiting takes and by hand
  readonly #lines = new Map<LineKey, TakeLine>();
  #startupEndsUs: number;
  #hasKeys = false;
  #closed = false;

  constructor(options: ResolvedRateOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#book = new RateBook(options);
    const nowUs = options.clock.nowUs();
    const { startup } = options;
    const fromStart = startup === undefined ? options : { ...options, burst: startup.burst };
    this.#law = lawOf(fromStart);
    this.#startupEndsUs =
      startup === undefined ? Number.POSITIVE_INFINITY : nowUs + Math.round(startup.forMs * 1000);
    this.#one = new Bucket(this.#law, nowUs);
    this.#keyed = new MemoryStore(lawOf(fromStart), options.maxKeys, this.#book.seed);
  }

  get name(): string {
    return this.#book.name;
  }

  get rate(): number {
    return this.#law.rate;
  }

  get burst(): number {
    this.#now(); // the start-up may be over
    return this.#law.burst;
  }

  tryTake(n = 1, key?: string): boolean {
    costOf(n);
    const nowUs = this.#now();
    if (this.#takeUs(n, key, this.#slotOf(key, nowUs), nowUs) === 0) {
      this.#book.granted++;
      return true;
    }
    return this.#book.refused(key, nowUs);
  }

  check(n = 1, key?: string): RateDecision {
    costOf(n);
    const nowUs = this.#now();
    const at = this.#slotOf(key, nowUs);
    const waitUs = this.#takeUs(n, key, at, nowUs);
    const tokens = this.#tokensAt(at, nowUs);
    const paidAtUs = at === ONE ? this.#one.paidAtUs() : this.#keyed.paidAtUs(at);
    // told last: a listener may call back in, for another key
    const granted = waitUs === 0 || this.#book.refused(key, nowUs);
    if (waitUs === 0) this.#book.granted++;
    return {
      granted,
      taken: waitUs === 0,
      remaining: Math.max(0, tokens),
      burst: this.#law.burst,
      resetMs: Math.max(0, paidAtUs - nowUs) / 1000,
      retryAfterMs: granted ? 0 : waitUs / 1000,
    };
  }

  take(n = 1, options: TakeOptions = {}): Promise<void> {
    return new Promise((resolve) => resolve(this.#take(n, options)));
  }

  reserve(n = 1, key?: string): number {
    costOf(n);
    const nowUs = this.#now();
    const at = this.#slotOf(key, nowUs);
    const waitUs = at === ONE ? this.#one.reserve(n, nowUs) : this.#keyed.reserveAt(at, n, nowUs);
    if (waitUs < Number.POSITIVE_INFINITY) this.#book.granted++;
    else if (this.#book.refused(key, nowUs)) return 0; // a dry run
    return waitUs / 1000;
  }

  refund(n = 1, key?: string): void {
    costOf(n);
    const nowUs = this.#now();
    const at = this.#slotOf(key, nowUs);
    if (at === ONE) this.#one.refund(n, nowUs);
    else this.#keyed.refundAt(at, n, nowUs);
    this.#serveLine(key);
  }

  tokens(key?: string): number {
    const nowUs = this.#now();
    return this.#tokensAt(this.#slotOf(key, nowUs), nowUs);
  }

  reset(key?: string): void {
    const nowUs = this.#now();
    if (key === undefined) this.#one.reset(nowUs);
    else {
      this.#hasKeys = true;
      this.#keyed.reset(keyOf(key), nowUs);
    }
    this.#serveLine(key);
  }

  setRate(rate: number): void {
    this.#now();
    const { rate: before, burst } = this.#law;
    // Guava's burst is counted in seconds
    const seconds = this.#options.strict && this.#options.warmUpMs === 0;
    this.#retune(rateOf('rate', rate), seconds ? (burst * rate) / before : burst);
  }

  setBurst(burst: number): void {
    const tokens = burstOf('burst', burst);
    this.#now(); // a start-up that is over has ended, and is not forgotten
    this.#forgetStartup();
    this.#retune(this.#law.rate, tokens);
  }

  snapshot(): RateLimiterSnapshot {
    const nowUs = this.#now();
    this.#keyed.prune(nowUs);
    let waiting = 0;
    for (const line of this.#lines.values()) waiting += line.size;
    const { granted, rejected, wouldReject } = this.#book;
    return {
      type: 'rateLimiter',
      name: this.name,
      rate: this.#law.rate,
      burst: this.#law.burst,
      tokens: this.#hasKeys ? -1 : this.#one.tokens(nowUs),
      keys: this.#hasKeys ? this.#keyed.size : 1,
      granted,
      rejected,
      wouldReject,
      waiting,
      mode: 'memory',
    };
  }

  flags(): FlagSnapshot[] {
    const { warmUpMs, coldFactor, startup, strict, maxKeys, revealKeys } = this.#options;
    const { rate, burst } = this;
    const { dryRun } = this.#book;
    return this.#book.flags({
      rate,
      burst,
      warmUpMs,
      coldFactor,
      startup,
      strict,
      maxKeys,
      dryRun,
      revealKeys,
    });
  }

  configure(partial: Readonly<Record<string, unknown>>): void {
    this.#now();
    const change = resolveRateChange(partial, this.#law);
    for (const name of ['storePolicy', 'storeTimeoutMs'] as const) {
      if (change[name] !== undefined) {
        throw new TypeError(`rate.${name} needs rate.store, got ${show(change[name])} without one`);
      }
    }
    this.#refuseStop(change.rate);
    this.#book.dryRun = change.dryRun ?? this.#book.dryRun;
    if (partial.burst !== undefined || partial.limit !== undefined) this.#forgetStartup();
    this.#retune(change.rate, change.burst);
    this.#book.configured(partial);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#options.registry?.remove(this);
    for (const line of this.#lines.values()) line.close(this.name);
    this.#lines.clear();
    return Promise.resolve();
  }

  /** The time, after the start-up burst has been put away if it is over. */
  #now(): number {
    const nowUs = this.#clock.nowUs();
    if (nowUs >= this.#startupEndsUs) this.#endStartup();
    return nowUs;
  }

  /** A burst set by hand stands: nothing comes after it by itself. */
  #forgetStartup(): void {
    this.#startupEndsUs = Number.POSITIVE_INFINITY;
  }

  #endStartup(): void {
    this.#forgetStartup();
    this.#retune(this.#law.rate, this.#options.burst);
  }

  /** Where the key's bucket lies; good until the next key is looked for. */
  #slotOf(key: LineKey, nowUs: number): Slot {
    if (key === undefined) return ONE;
    this.#hasKeys = true;
    return this.#keyed.find(keyOf(key), nowUs);
  }

  /** 0 if taken, else microseconds to wait. */
  #takeUs(n: number, key: LineKey, at: Slot, nowUs: number): number {
    const line = this.#lines.size > 0 ? this.#lines.get(key) : undefined;
    return line === undefined ? this.#takeAt(at, n, nowUs) : this.#behindUs(line, n, at, nowUs);
  }

  /** How long for `n` more behind those who wait already: 0 for nothing only. */
  #behindUs(line: TakeLine, n: number, at: Slot, nowUs: number): number {
    if (n === 0) return 0;
    if (n > this.#law.burst && !this.#options.strict) return Number.POSITIVE_INFINITY;
    const missing = line.asked + n - this.#tokensAt(at, nowUs);
    return refillUs(missing, this.#law.rate);
  }

  #takeAt(at: Slot, n: number, nowUs: number): number {
    return at === ONE ? this.#one.take(n, nowUs) : this.#keyed.takeAt(at, n, nowUs);
  }

  #waitAt(at: Slot, n: number, nowUs: number): number {
    return at === ONE ? this.#one.waitUs(n, nowUs) : this.#keyed.waitAt(at, n, nowUs);
  }

  #tokensAt(at: Slot, nowUs: number): number {
    return at === ONE ? this.#one.tokens(nowUs) : this.#keyed.tokensAt(at, nowUs);
  }

  #take(n: number, options: TakeOptions): Promise<void> | undefined {
    costOf(n);
    const maxWaitMs = maxWaitOf(options);
    const { key, signal } = options;
    signal?.throwIfAborted();
    const nowUs = this.#now();
    const waitUs = this.#takeUs(n, key, this.#slotOf(key, nowUs), nowUs);
    if (waitUs === 0) {
      this.#book.granted++;
      return undefined;
    }
    if (n > this.#law.burst && !this.#options.strict) throw this.#tooLarge(n);
    if (this.#book.dryRun) {
      this.#book.refused(key, nowUs);
      return undefined;
    }
    if (this.#closed) throw closed(this.name);
    const late = (): Error => {
      const atUs = this.#now();
      const leftUs = this.#waitAt(this.#slotOf(key, atUs), n, atUs);
      this.#book.refused(key, atUs);
      return tooLong(this.name, Math.ceil(leftUs / 1000));
    };
    if (waitUs / 1000 > maxWaitMs && this.#law.rate > 0) {
      this.#book.refused(key, nowUs);
      throw tooLong(this.name, Math.ceil(waitUs / 1000));
    }
    const line = this.#lines.get(key) ?? new TakeLine(this.#options.timers);
    this.#lines.set(key, line);
    const joined = line.join(n, signal, maxWaitMs, late, () => this.#serveLine(key));
    if (line.size === 1) this.#serveLine(key);
    return joined;
  }

  #tooLarge(n: number): RangeError {
    return new RangeError(
      `n must be at most the burst, ${this.#law.burst}, got ${n}: it would wait for ever`,
    );
  }

  /** Gives to those who wait what is there, and sleeps until the next one's tokens are. */
  #serveLine(key: LineKey): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    for (let first = line.first; first !== undefined; first = line.first) {
      const nowUs = this.#now();
      const waitUs = this.#takeAt(this.#slotOf(key, nowUs), first.n, nowUs);
      if (waitUs === 0) {
        this.#book.granted++;
        line.serve();
      } else if (first.n > this.#law.burst && !this.#options.strict) {
        line.turnAway(this.#tooLarge(first.n)); // the burst was lowered meanwhile
      } else {
        line.wake(waitUs / 1000, () => this.#serveLine(key));
        return;
      }
    }
    line.sleep();
    this.#lines.delete(key);
  }

  #refuseStop(rate: number): void {
    if (this.#options.strict && rate === 0) {
      throw new RangeError('rate must be more than 0 with strict, got 0: Guava knows no stop');
    }
  }

  #retune(rate: number, burst: number): void {
    if (rate === this.#law.rate && burst === this.#law.burst) return;
    this.#refuseStop(rate);
    const nowUs = this.#clock.nowUs();
    this.#one.retune(rate, burst, nowUs);
    this.#keyed.retune(rate, burst, nowUs);
    for (const key of this.#lines.keys()) this.#serveLine(key);
  }
}
