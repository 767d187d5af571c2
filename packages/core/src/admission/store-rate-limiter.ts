import type { Clock } from '../clock.js';
import { tell } from '../events.js';
import type { FlagSnapshot, RateLimiterSnapshot } from '../metrics/snapshot.js';
import { having, show } from '../options.js';
import { refillUs } from '../rate/law.js';
import { MemoryStore } from '../rate/memory-store.js';
import {
  type RateQuota,
  type RateStore,
  RateStoreError,
  type RateStoreSession,
  type StoreAnswer,
} from '../rate/store.js';
import { TokenBucketLaw } from '../rate/token-bucket.js';
import { costOf, keyOf, RateBook } from './rate-book.js';
import type { RateDecision, SharedRateLimiter, TakeOptions } from './rate-contract.js';
import {
  burstOf,
  type ResolvedRateOptions,
  rateOf,
  resolveRateChange,
  type StorePolicy,
} from './rate-options.js';
import { closed, maxWaitOf, TakeLine, tooLong, type Waiter } from './take-line.js';

/** After a failure the store is tried again after this long, doubling, jittered by a fifth. */
const FIRST_PROBE_US = 200_000;
const LAST_PROBE_US = 2_000_000;
/** What a refusal by policy says about when to come back. */
const CLOSED_RETRY_MS = 1000;
/** The store's key for the one bucket of a limiter without keys. */
const NO_KEY = '';

const SESSION = ['take', 'refund', 'reset', 'probe', 'close'] as const;

/** Where decisions come from right now. */
type Mode = 'store' | StorePolicy;

/** `taken` is false for a call that the policy lets through, though nobody counted it. */
type Answer = StoreAnswer & { readonly taken?: false };

/** A rate limiter on a shared store. Made by `createRateLimiter`. */
export class StoreRateLimiter implements SharedRateLimiter {
  // set once
  readonly #options: ResolvedRateOptions;
  readonly #clock: Clock;
  readonly #book: RateBook;
  readonly #session: RateStoreSession;
  readonly #front: MemoryStore | undefined;
  /** What `local` counts with; its quota is this process's share. */
  readonly #local: MemoryStore;
  // changed by hand
  #quota: RateQuota;
  #policy: StorePolicy;
  #timeoutMs: number;
  // moves with the store's health
  #mode: Mode = 'store';
  #localQuota: RateQuota;
  #probing = false;
  #probeFromUs = 0;
  #probeWaitUs = FIRST_PROBE_US;
  #closed = false;
  readonly #lines = new Map<string, TakeLine>();
  /** Lines whose first one is asked for; true if that has to be repeated. */
  readonly #asking = new Map<TakeLine, boolean>();

  constructor(options: ResolvedRateOptions & { readonly store: RateStore }) {
    const { clock, timers, random, name, rate, burst, front, maxKeys } = options;
    this.#options = options;
    this.#clock = clock;
    this.#book = new RateBook(options);
    this.#quota = this.#localQuota = { rate, burst };
    this.#policy = options.storePolicy;
    this.#timeoutMs = options.storeTimeoutMs;
    const inMemory = (quota: RateQuota): MemoryStore =>
      new MemoryStore(new TokenBucketLaw(quota.rate, quota.burst), maxKeys, this.#book.seed);
    this.#front = front === undefined ? undefined : inMemory(front);
    this.#local = inMemory(this.#localQuota);
    const session = options.store.open({ name, clock, timers, random });
    this.#session = having('rate.store.open()', session, SESSION);
  }

  get name(): string {
    return this.#book.name;
  }

  get rate(): number {
    return this.#quota.rate;
  }

  get burst(): number {
    return this.#quota.burst;
  }

  async tryTake(n = 1, key?: string): Promise<boolean> {
    return (await this.check(n, key)).granted;
  }

  check(n = 1, key?: string): RateDecision | Promise<RateDecision> {
    costOf(n);
    const counted = key === undefined ? NO_KEY : keyOf(key);
    const answer = this.#ask(n, counted);
    if (!(answer instanceof Promise)) return this.#decide(answer, key);
    return answer.then((told) => this.#decide(told, key));
  }

  async take(n = 1, options: TakeOptions = {}): Promise<void> {
    costOf(n);
    const maxWaitMs = maxWaitOf(options);
    const { key, signal } = options;
    signal?.throwIfAborted();
    this.#refuseClosed();
    if (n > this.#quota.burst) throw this.#tooLarge(n);
    const counted = key === undefined ? NO_KEY : keyOf(key);
    let line = this.#lines.get(counted);
    if (line === undefined) {
      const answer = await this.#ask(n, counted);
      if (this.#closed || signal?.aborted === true) {
        if (answer.granted) this.refund(n, key); // it left while we asked
        signal?.throwIfAborted();
        throw closed(this.name);
      }
      if (answer.granted) {
        this.#book.granted++;
        return;
      }
      if (this.#book.dryRun || answer.waitUs / 1000 > maxWaitMs) {
        if (this.#book.refused(key, this.#clock.nowUs())) return; // a dry run
        throw tooLong(this.name, Math.ceil(answer.waitUs / 1000));
      }
      line = this.#lines.get(counted) ?? this.#newLine(counted); // somebody may have come while we asked
      if (line.size === 0) line.wake(answer.waitUs / 1000, () => this.#serveLine(counted));
    }
    const late = (): Error => {
      this.#book.refused(key, this.#clock.nowUs());
      return tooLong(this.name, Math.ceil((n / this.#quota.rate) * 1000));
    };
    const left = (wasFirst: boolean): void => {
      if (wasFirst) this.#serveLine(counted); // whoever is next may want less
    };
    await line.join(n, signal, maxWaitMs, late, left);
  }

  refund(n = 1, key?: string): void {
    costOf(n);
    const counted = key === undefined ? NO_KEY : keyOf(key);
    this.#giveBack(n, counted);
    this.#serveLine(counted);
  }

  async reset(key?: string): Promise<void> {
    const counted = key === undefined ? NO_KEY : keyOf(key);
    const nowUs = this.#clock.nowUs();
    this.#front?.reset(counted, nowUs);
    this.#local.reset(counted, nowUs);
    await this.#session.reset(counted);
    this.#serveLine(counted);
  }

  setRate(rate: number): void {
    this.#retune({ rate: rateOf('rate', rate), burst: this.#quota.burst });
  }

  setBurst(burst: number): void {
    this.#retune({ rate: this.#quota.rate, burst: burstOf('burst', burst) });
  }

  snapshot(): RateLimiterSnapshot {
    const nowUs = this.#clock.nowUs();
    this.#local.prune(nowUs);
    this.#front?.prune(nowUs);
    let waiting = 0;
    for (const line of this.#lines.values()) waiting += line.size;
    const { granted, rejected, wouldReject } = this.#book;
    return {
      type: 'rateLimiter',
      name: this.name,
      rate: this.#quota.rate,
      burst: this.#quota.burst,
      tokens: -1,
      keys: Math.max(this.#local.size, this.#front?.size ?? 0),
      granted,
      rejected,
      wouldReject,
      waiting,
      mode: this.#mode,
    };
  }

  flags(): FlagSnapshot[] {
    const { front, maxKeys, revealKeys } = this.#options;
    return this.#book.flags({
      ...this.#quota,
      storePolicy: this.#policy,
      storeTimeoutMs: this.#timeoutMs,
      front,
      maxKeys,
      dryRun: this.#book.dryRun,
      revealKeys,
    });
  }

  configure(partial: Readonly<Record<string, unknown>>): void {
    const change = resolveRateChange(partial, this.#quota);
    this.#book.dryRun = change.dryRun ?? this.#book.dryRun;
    this.#timeoutMs = change.storeTimeoutMs ?? this.#timeoutMs;
    this.#policy = change.storePolicy ?? this.#policy;
    this.#retune({ rate: change.rate, burst: change.burst });
    if (this.#mode !== 'store') this.#enter(this.#policy, 'configured');
    this.#book.configured(partial);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.registry?.remove(this);
    for (const line of this.#lines.values()) line.close(this.name);
    this.#lines.clear();
    await this.#bounded(this.#call('close')).catch(ignored); // a dead store has forgotten us anyway
  }

  // --- one request, from the nearest that can tell

  #ask(n: number, key: string): StoreAnswer | Promise<StoreAnswer> {
    const { rate, burst } = this.#quota;
    if (n === 0) return { granted: true, remaining: burst, waitUs: 0, fullInUs: 0 };
    if (n > burst) return never(burst);
    const nowUs = this.#clock.nowUs();
    if (this.#front !== undefined) {
      const at = this.#front.find(key, nowUs);
      const waitUs = this.#front.takeAt(at, n, nowUs);
      if (waitUs > 0)
        return { granted: false, remaining: 0, waitUs, fullInUs: refillUs(burst, rate) };
    }
    const answer = this.#mode === 'store' ? this.#askStore(n, key) : this.#byPolicy(n, key, nowUs);
    if (this.#front === undefined) return answer;
    if (answer instanceof Promise) return answer.then((told) => this.#settleFront(told, n, key));
    return this.#settleFront(answer, n, key);
  }

  /** What the store refused has not been used in front of it either. */
  #settleFront(answer: Answer, n: number, key: string): Answer {
    if (!answer.granted && this.#front !== undefined) {
      const nowUs = this.#clock.nowUs();
      this.#front.refundAt(this.#front.find(key, nowUs), n, nowUs);
    }
    return answer;
  }

  #askStore(n: number, key: string): StoreAnswer | Promise<StoreAnswer> {
    const quota = this.#quota;
    try {
      const told = this.#session.take(key, n, quota);
      if (isAnswer(told)) return told;
      const answer = answerOf(told);
      return this.#bounded(answer).catch((error: unknown) => {
        if (error === TIMED_OUT) {
          // it was decided without the store: what comes late is not used
          answer.then(({ granted }) => granted && this.#putBack(key, n, quota), ignored);
        }
        return this.#withoutStore(error, n, key);
      });
    } catch (error) {
      return this.#withoutStore(error, n, key);
    }
  }

  /** A session may be anybody's: what it throws at once is a rejection as well. */
  async #call(method: 'probe' | 'close'): Promise<void> {
    await this.#session[method]();
  }

  #giveBack(n: number, key: string): void {
    const nowUs = this.#clock.nowUs();
    this.#front?.refundAt(this.#front.find(key, nowUs), n, nowUs);
    if (this.#mode === 'store') this.#putBack(key, n, this.#quota);
    else if (this.#mode === 'local') this.#local.refundAt(this.#local.find(key, nowUs), n, nowUs);
  }

  /** Best effort: a store that cannot take them back fails nobody. */
  #putBack(key: string, n: number, quota: RateQuota): void {
    tell(() => this.#session.refund(key, n, quota), undefined);
  }

  #withoutStore(error: unknown, n: number, key: string): StoreAnswer {
    const nowUs = this.#clock.nowUs();
    if (RateStoreError.is(error) && error.scope === 'key') {
      this.#book.warn('WARN_RATE_STORE_KEY', error.message); // one odd key does not take the store from all
    } else if (this.#mode === 'store') {
      this.#probeWaitUs = FIRST_PROBE_US;
      this.#planProbe(nowUs);
      this.#enter(this.#policy, causeOf(error));
    }
    return this.#byPolicy(n, key, nowUs);
  }

  #byPolicy(n: number, key: string, nowUs: number): Answer {
    if (this.#mode !== 'store' && nowUs >= this.#probeFromUs && !this.#probing) this.#probe();
    const { rate, burst } = this.#quota;
    if (this.#policy === 'open') {
      return { granted: true, taken: false, remaining: burst, waitUs: 0, fullInUs: 0 };
    }
    if (this.#policy === 'closed') {
      const fullInUs = refillUs(burst, rate);
      return { granted: false, remaining: 0, waitUs: CLOSED_RETRY_MS * 1000, fullInUs };
    }
    const at = this.#local.find(key, nowUs);
    // a share may be smaller than one costly call: it then costs the whole share
    const waitUs = this.#local.takeAt(at, Math.min(n, this.#localQuota.burst), nowUs);
    return {
      granted: waitUs === 0,
      remaining: Math.max(0, this.#local.tokensAt(at, nowUs)),
      waitUs,
      fullInUs: Math.max(0, this.#local.paidAtUs(at) - nowUs),
    };
  }

  #decide(answer: Answer, key: string | undefined): RateDecision {
    if (answer.granted) this.#book.granted++;
    const granted = answer.granted || this.#book.refused(key, this.#clock.nowUs());
    return {
      granted,
      taken: answer.taken ?? answer.granted,
      remaining: answer.remaining,
      burst: this.#quota.burst,
      resetMs: answer.fullInUs / 1000,
      retryAfterMs: granted ? 0 : answer.waitUs / 1000,
    };
  }

  // --- the store's health

  #enter(mode: Mode, cause: string): void {
    const from = this.#mode;
    if (mode === from) return;
    this.#mode = mode;
    if (mode === 'local') this.#shareQuota();
    this.#book.mode(from, mode, cause);
  }

  /** Of the processes that were last heard of, each enforces its share. */
  #shareQuota(): void {
    const { rate, burst } = this.#quota;
    const holders = holdersOf(this.#session);
    this.#localQuota = {
      rate: rate / holders,
      burst: Math.max(Math.min(1, burst), burst / holders),
    };
    this.#local.retune(this.#localQuota.rate, this.#localQuota.burst, this.#clock.nowUs());
  }

  #planProbe(nowUs: number): void {
    const jitter = 0.8 + 0.4 * this.#options.random();
    this.#probeFromUs = nowUs + this.#probeWaitUs * jitter;
    this.#probeWaitUs = Math.min(LAST_PROBE_US, this.#probeWaitUs * 2);
  }

  /** One question at a time, carried by traffic: a limiter that nobody asks holds no timer. */
  #probe(): void {
    this.#probing = true;
    const settled = (isUp: boolean): void => {
      this.#probing = false;
      if (isUp && !this.#closed) this.#enter('store', 'answered');
      else this.#planProbe(this.#clock.nowUs());
    };
    this.#bounded(this.#call('probe')).then(
      () => settled(true),
      () => settled(false),
    );
  }

  /** The answer, or a failure after `storeTimeoutMs`. */
  async #bounded<T>(answer: Promise<T>): Promise<T> {
    const { timers } = this.#options;
    let timer: unknown;
    const late = new Promise<never>((_, reject) => {
      timer = timers.setTimeout(() => {
        // after a blocked loop timers run first: what lies in the socket gets a turn to be read
        timer = timers.setTimeout(() => reject(TIMED_OUT), 0);
      }, this.#timeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      timers.clearTimeout(timer);
    }
  }

  // --- those who wait

  #serveLine(key: string): void {
    const line = this.#lines.get(key);
    const first = line?.first;
    if (line === undefined || first === undefined) {
      this.#endLine(key);
      return;
    }
    if (first.n > this.#quota.burst) {
      line.turnAway(this.#tooLarge(first.n)); // the burst was lowered meanwhile
      this.#serveLine(key);
      return;
    }
    void this.#serve(line, first, key);
  }

  /** One question at a time for a line: what changes meanwhile makes it ask once more. */
  async #serve(line: TakeLine, first: Waiter, key: string): Promise<void> {
    if (this.#asking.has(line)) {
      this.#asking.set(line, true);
      return;
    }
    this.#asking.set(line, false);
    const answer = await this.#ask(first.n, key);
    const hasChanged = this.#asking.get(line) === true;
    this.#asking.delete(line);
    if (!answer.granted && !hasChanged) {
      // all have left meanwhile, or been turned away
      if (this.#lines.get(key) !== line) return;
      line.wake(answer.waitUs / 1000, () => this.#serveLine(key));
      return;
    }
    if (answer.granted && line.first === first) {
      this.#book.granted++;
      line.serve();
    } else if (answer.granted) this.#giveBack(first.n, key); // it left while we asked
    this.#serveLine(key);
  }

  #refuseClosed(): void {
    if (this.#closed) throw closed(this.name);
  }

  #newLine(key: string): TakeLine {
    const line = new TakeLine(this.#options.timers);
    this.#lines.set(key, line);
    return line;
  }

  #endLine(key: string): void {
    const line = this.#lines.get(key);
    if (line === undefined || line.size > 0) return;
    line.sleep();
    this.#lines.delete(key);
  }

  #retune(quota: RateQuota): void {
    this.#quota = quota;
    if (this.#mode === 'local') this.#shareQuota();
    for (const key of this.#lines.keys()) this.#serveLine(key);
  }

  #tooLarge(n: number): RangeError {
    return new RangeError(
      `n must be at most the burst, ${this.#quota.burst}, got ${n}: it would wait for ever`,
    );
  }
}

const TIMED_OUT = new RateStoreError('the store did not answer in time', 'store');

/** At least 1, whatever the session says, or throws. */
function holdersOf(session: RateStoreSession): number {
  try {
    const told: unknown = session.holders;
    return typeof told === 'number' && told > 1 && told < Infinity ? told : 1;
  } catch {
    return 1;
  }
}

function causeOf(error: unknown): string {
  if (error === TIMED_OUT) return 'timeout';
  return error instanceof Error || RateStoreError.is(error) ? error.message : 'error';
}

function never(burst: number): StoreAnswer {
  return {
    granted: false,
    remaining: burst,
    waitUs: Number.POSITIVE_INFINITY,
    fullInUs: 0,
  };
}

/** NaN and text are no numbers of an answer; what is beyond its range is the store's own business. */
function isAnswer(told: unknown): told is StoreAnswer {
  const { granted, remaining, waitUs, fullInUs } = (told ?? {}) as StoreAnswer;
  return (
    typeof granted === 'boolean' &&
    typeof waitUs === 'number' &&
    waitUs >= 0 &&
    isNumber(remaining) &&
    isNumber(fullInUs)
  );
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(value);
}

/** What a store promised, of whatever kind its promise is; what is no answer fails like the store. */
async function answerOf(promised: unknown): Promise<StoreAnswer> {
  const told = await promised;
  if (isAnswer(told)) return told;
  throw new RateStoreError(`the store answered ${show(told)} to take`, 'store');
}

function ignored(): void {}
