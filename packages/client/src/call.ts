import { NO_TOKEN, TimeoutError, type TimerHandle, tell } from '@elimit/core';
import { onAbort } from './abort-hub.js';
import { type Attempt, createAttempt, type TryFn } from './attempt.js';
import type { Endpoint, Neighbours } from './endpoint.js';
import type { ResolvedChannelOptions } from './options.js';
import { isRepeatable, mayRetry, type ResendRules } from './retry.js';
import type { RetryBudget } from './retry-budget.js';
import type { Classify, Ended, Verdict } from './verdict.js';

/** What a caller may say about one call. */
export interface CallOptions<T = unknown> extends ResendRules {
  /** Ends the call at once, with the signal's reason. Never counted against an endpoint. */
  readonly signal?: AbortSignal | undefined;
  /** Time for this call, all tries included, in milliseconds, 1 to 86 400 000; in place of the channel's. */
  readonly timeoutMs?: number | undefined;
  /**
   * Time left of a deadline that came in from outside, in milliseconds; can only shorten the call. A timeout
   * it causes is not the endpoint's failure. 0 or less: the call fails at once.
   */
  readonly carriedTimeoutMs?: number | undefined;
  /** Tries after the first, in place of the channel's, 0 to 100. */
  readonly maxRetries?: number | undefined;
  /** Isolation by error cost for this call, unless the channel has decided. @default false */
  readonly errorCost?: boolean | undefined;
  /** False: this call neither asks breakers nor teaches them. @default true */
  readonly breaker?: boolean | undefined;
  /** Sends the call to this origin, listed or not, instead of the nodes. Others are not tried. */
  readonly origin?: string | URL | undefined;
  /** Gives a verdict on this call's tries, in place of the channel's. */
  readonly classify?: Classify | undefined;
  /** Is handed the end of each try that the caller will not see, to let go of a body. What it throws, or rejects with, is swallowed. */
  readonly discard?: ((ended: Ended<T>) => void) | undefined;
}

/** An endpoint chosen for one try. */
export interface Picked {
  readonly endpoint: Endpoint;
  /** The breaker's, or `NO_TOKEN` for a try it is not told about. */
  readonly token: number;
}

/** What a call may know when it asks for an endpoint. */
export interface PickRules {
  /** Already tried, in order. */
  readonly tried: readonly Endpoint[];
  /** Only one that was not tried. */
  readonly freshOnly: boolean;
  /** Ask the breakers. */
  readonly askBreaker: boolean;
  readonly origin: string | undefined;
}

/** The channel, as its calls see it. */
export interface CallHost extends Neighbours {
  readonly options: ResolvedChannelOptions;
  readonly retryBudget: RetryBudget | undefined;
  readonly backupBudget: RetryBudget | undefined;
  /** Calls back once the nodes are known; at once if they are. */
  whenReady(call: object, ready: () => void): void;
  /** An endpoint, or the error for a call that gets none. */
  pick(rules: PickRules): Picked | Error;
  /** The error of a call for which there is nobody. */
  noEndpoint(): Error;
  /** Endpoints that a call could use now. */
  usable(origin: string | undefined, nowUs: number): Endpoint[];
  /** True if an ELIMIT mark by this endpoint is believed. */
  isTrusted(endpoint: Endpoint): boolean;
  started(call: object, cancel: (reason: Error) => void): void;
  finished(call: object): void;
}

interface Try {
  readonly number: number;
  readonly isBackup: boolean;
  readonly control: AbortController;
  timer: TimerHandle;
  // these move on when the endpoint sends the request to another origin
  endpoint: Endpoint;
  token: number;
  startUs: number;
  allowedUs: number;
  /** The try's own share was cut short by the caller's side: a timeout is not the endpoint's failure. */
  isCutShort: boolean;
  hasMoved: boolean;
  isCallersFault: boolean;
}

/** A refusal that does not say when to come back is left alone for so long. */
const DEFAULT_RETRY_AFTER_MS = 100;
const GATEWAY_TIMEOUT = 504;
/** A timeout counts if the try had at least this share of the time that a first try has. */
const FAIR_SHARE = 0.5;

/** One call: its tries, its time, its retries and its backup. */
export class Call<T> {
  // set once
  readonly #host: CallHost;
  readonly #tryFn: TryFn<T>;
  readonly #options: CallOptions<T>;
  readonly #resolve: (value: T | PromiseLike<T>) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #origin: string | undefined;
  readonly #timeoutMs: number;
  readonly #isCarried: boolean;
  readonly #deadlineUs: number;
  // moves with every try
  readonly #active = new Set<Try>();
  readonly #tried: Endpoint[] = [];
  readonly #askedToWait = new Set<Endpoint>();
  #retriesLeft: number;
  #attempts = 0;
  #last: Ended<T> | undefined;
  #isOver = false;
  #deadline: TimerHandle;
  #backup: TimerHandle;
  #pause: TimerHandle;
  #stopListening: (() => void) | undefined;

  constructor(
    host: CallHost,
    tryFn: TryFn<T>,
    options: CallOptions<T>,
    resolve: (value: T | PromiseLike<T>) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#host = host;
    this.#tryFn = tryFn;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#origin = options.origin === undefined ? undefined : new URL(options.origin).origin;
    this.#retriesLeft = options.maxRetries ?? host.options.maxRetries;
    const ownMs = options.timeoutMs ?? host.options.timeoutMs;
    const carriedMs = options.carriedTimeoutMs ?? Number.POSITIVE_INFINITY;
    this.#isCarried = carriedMs < ownMs;
    this.#timeoutMs = Math.max(0, Math.min(ownMs, carriedMs));
    this.#deadlineUs = host.options.clock.nowUs() + this.#timeoutMs * 1000;
  }

  start(): void {
    const { signal } = this.#options;
    const { timers } = this.#host.options;
    this.#host.started(this, (reason) => this.#cancel(reason));
    if (signal?.aborted) {
      this.#cancel(signal.reason);
    } else if (this.#timeoutMs === 0) {
      this.#expire();
    } else {
      this.#stopListening = signal && onAbort(signal, () => this.#cancel(signal.reason));
      this.#deadline = timers.setTimeout(() => this.#expire(), this.#timeoutMs);
      this.#host.whenReady(this, () => this.#first());
    }
  }

  #first(): void {
    if (this.#isOver) return;
    const { timers, backupRequestMs } = this.#host.options;
    this.#host.retryBudget?.called();
    this.#host.backupBudget?.called();
    if (backupRequestMs !== undefined && isRepeatable(this.#options)) {
      this.#backup = timers.setTimeout(() => this.#sendBackup(), backupRequestMs);
    }
    const error = this.#launch(false);
    if (error !== undefined) this.#finish({ ok: false, error });
  }

  /** Begins a try; gives the reason if there is no endpoint for it. */
  #launch(isBackup: boolean): Error | undefined {
    const picked = this.#pick(isBackup);
    if (picked instanceof Error) return picked;
    const current = this.#begin(picked, isBackup);
    void this.#run(current, this.#attemptOf(current));
    return undefined;
  }

  #pick(freshOnly: boolean): Picked | Error {
    try {
      return this.#host.pick({
        tried: this.#tried,
        freshOnly,
        askBreaker: this.#options.breaker !== false,
        origin: this.#origin,
      });
    } catch (error) {
      return error as Error; // a balancer of the user's own
    }
  }

  #begin({ endpoint, token }: Picked, isBackup: boolean): Try {
    const { clock, timers } = this.#host.options;
    const startUs = clock.nowUs();
    const leftUs = this.#deadlineUs - startUs;
    const current: Try = {
      number: this.#attempts++,
      isBackup,
      control: new AbortController(),
      timer: undefined,
      endpoint,
      token,
      startUs,
      ...this.#shareOf(leftUs),
      hasMoved: false,
      isCallersFault: false,
    };
    if (current.allowedUs < leftUs) {
      const { allowedUs } = current;
      current.timer = timers.setTimeout(() => this.#tryExpired(current), allowedUs / 1000);
    }
    this.#tried.push(endpoint);
    this.#active.add(current);
    endpoint.begin();
    return current;
  }

  /** What a try may take of the time that is left. */
  #shareOf(leftUs: number): { allowedUs: number; isCutShort: boolean } {
    const { tryTimeoutMs, timeoutMs: channelMs } = this.#host.options;
    const fullUs = (tryTimeoutMs ?? this.#options.timeoutMs ?? channelMs) * 1000;
    const allowedUs = Math.min(leftUs, fullUs);
    const isCutShort = allowedUs < fullUs && (this.#isCarried || allowedUs < fullUs * FAIR_SHARE);
    return { allowedUs, isCutShort };
  }

  #attemptOf(current: Try): Attempt {
    const { connectTimeoutMs, timeoutHeader } = this.#host.options;
    return createAttempt({
      endpoint: current.endpoint,
      signal: current.control.signal,
      timeoutMs: Math.max(1, Math.ceil(current.allowedUs / 1000)),
      connectTimeoutMs,
      timeoutHeader,
      attempt: current.number,
      isBackup: current.isBackup,
      redirected: (origin) => this.#redirected(current, origin),
      brokeOff: (error) => this.#brokeOff(current, error),
      callersFault: () => {
        current.isCallersFault = true;
      },
    });
  }

  /** The endpoint has answered: go to another origin. From now on the try is at that one, and what happens is its doing. */
  #redirected(current: Try, to: string | URL): Attempt {
    const origin = new URL(to).origin;
    if (origin === current.endpoint.origin || !this.#active.has(current)) {
      return this.#attemptOf(current);
    }
    const picked = this.#host.pick({
      tried: [],
      freshOnly: false,
      askBreaker: this.#options.breaker !== false,
      origin,
    });
    if (picked instanceof Error) throw picked;
    this.#book(current, { outcome: 'success' });
    const nowUs = this.#host.options.clock.nowUs();
    const leftUs = Math.min(this.#deadlineUs, current.startUs + current.allowedUs) - nowUs;
    Object.assign(current, picked, { startUs: nowUs, ...this.#shareOf(leftUs), hasMoved: true });
    current.endpoint.begin();
    return this.#attemptOf(current);
  }

  async #run(current: Try, attempt: Attempt): Promise<void> {
    const ended = await settled(this.#tryFn, attempt);
    if (this.#active.has(current)) this.#ended(current, ended);
    else this.#discard(ended);
  }

  #ended(current: Try, ended: Ended<T>): void {
    let verdict: Verdict;
    try {
      verdict = this.#verdictOf(current, ended);
    } catch (error) {
      this.#settle(current, { outcome: 'ignored' });
      this.#finish({ ok: false, error });
      return;
    }
    this.#settle(current, verdict);
    const isFinal = ended.ok && verdict.outcome !== 'failure' && !verdict.refusal;
    if (isFinal || !this.#tryAgain(current, ended, verdict)) this.#conclude(ended, isFinal);
  }

  /** Nothing more is tried for this end: it is the call's, unless a try that still runs may do better. */
  #conclude(ended: Ended<T>, isFinal: boolean): void {
    if (isFinal || this.#active.size === 0) this.#finish(ended);
    else this.#keep(ended);
  }

  /** True if another try has begun, or will after a pause. */
  #tryAgain(current: Try, ended: Ended<T>, verdict: Verdict): boolean {
    const { options, retryBudget } = this.#host;
    if (verdict.refusal || verdict.retryAfterMs !== undefined) {
      this.#askedToWait.add(current.endpoint);
    }
    if (this.#pause !== undefined) {
      this.#keep(ended);
      return true;
    }
    // the first endpoint may have acted before it sent us on
    if (current.hasMoved && !isRepeatable(this.#options)) return false;
    if (this.#retriesLeft <= 0 || !mayRetry(verdict, this.#options, options.retryStatuses)) {
      return false;
    }
    const pauseUs = this.#pauseUs();
    if (pauseUs === undefined || pauseUs >= this.#deadlineUs - options.clock.nowUs()) return false;
    // paid before the pause, so that tries that wait are counted
    if (retryBudget?.trySpend() === false) return false;
    this.#retriesLeft -= 1;
    this.#keep(ended);
    if (pauseUs === 0) return this.#retry();
    this.#pause = options.timers.setTimeout(() => {
      this.#pause = undefined;
      if (!this.#retry()) this.#conclude(this.#last ?? ended, false);
    }, pauseUs / 1000);
    return true;
  }

  #retry(): boolean {
    return this.#launch(false) === undefined;
  }

  /** How long to wait before the next try: not at all while somebody is left who has not asked for it. `undefined`: nobody is left. */
  #pauseUs(): number | undefined {
    const nowUs = this.#host.options.clock.nowUs();
    let leastUs: number | undefined;
    for (const endpoint of this.#host.usable(this.#origin, nowUs)) {
      const pauseUs = this.#askedToWait.has(endpoint) ? endpoint.deferredUs(nowUs) : 0;
      if (leastUs === undefined || pauseUs < leastUs) leastUs = pauseUs;
    }
    return leastUs;
  }

  #sendBackup(): void {
    const { backupBudget, options } = this.#host;
    if (this.#active.size !== 1 || this.#retriesLeft <= 0) return;
    // an endpoint first, so that a backup nobody can take costs nothing
    const others = this.#host
      .usable(this.#origin, options.clock.nowUs())
      .filter((endpoint) => !this.#tried.includes(endpoint));
    if (others.length === 0 || backupBudget?.trySpend() === false) return;
    if (this.#launch(true) === undefined) this.#retriesLeft -= 1;
  }

  /** The verdict, corrected by what only the call knows. */
  #verdictOf(current: Try, ended: Ended<T>): Verdict {
    if (current.isCallersFault && !ended.ok) return { outcome: 'ignored', retriable: false };
    const classify = this.#options.classify ?? this.#host.options.classify;
    const verdict = classify(ended);
    // it was in a hurry for us: its 504 and our timeout are one and the same
    if (verdict.status === GATEWAY_TIMEOUT && current.isCutShort) {
      return { ...verdict, outcome: 'ignored' };
    }
    if (!verdict.refusal || this.#host.isTrusted(current.endpoint)) return verdict;
    // a mark from outside the list is just a 503
    return { ...verdict, outcome: 'failure', refusal: false };
  }

  #tryExpired(current: Try): void {
    const { origin } = current.endpoint;
    const error = new TimeoutError(`a try on ${origin}`, Math.ceil(current.allowedUs / 1000));
    current.control.abort(error);
    this.#ended(current, { ok: false, error });
  }

  #expire(): void {
    const { name } = this.#host.options;
    const to = this.#origin === undefined ? '' : ` to ${this.#origin}`;
    const late = new TimeoutError(`a call on channel ${name}${to}`, Math.ceil(this.#timeoutMs));
    const waitedForNodes = this.#attempts === 0 && this.#timeoutMs > 0;
    for (const current of this.#active) {
      current.control.abort(late); // first: an upload may say then that it was waited for
      const isExcused = current.isCutShort || current.isCallersFault;
      this.#settle(current, { outcome: isExcused ? 'ignored' : 'failure' });
    }
    this.#finish({ ok: false, error: waitedForNodes ? this.#host.noEndpoint() : late });
  }

  /** Ends everything for a reason of the caller's: nobody's failure. */
  #cancel(reason: unknown): void {
    if (this.#isOver) return;
    this.#abortAll(reason);
    this.#finish({ ok: false, error: reason });
  }

  #abortAll(reason: unknown): void {
    for (const current of this.#active) {
      this.#settle(current, { outcome: 'ignored' });
      current.control.abort(reason);
    }
  }

  /** Ends a try. */
  #settle(current: Try, verdict: Verdict): void {
    this.#active.delete(current);
    this.#host.options.timers.clearTimeout(current.timer);
    this.#book(current, verdict);
  }

  /** Tells a try's endpoint how it ended there. */
  #book({ endpoint, token, startUs, allowedUs }: Try, verdict: Verdict): void {
    const { clock, errorCost, maxRetryAfterMs } = this.#host.options;
    const askedMs = verdict.retryAfterMs ?? (verdict.refusal ? DEFAULT_RETRY_AFTER_MS : 0);
    const teaches = this.#options.breaker !== false;
    endpoint.end({
      verdict: teaches ? verdict : { ...verdict, connect: undefined },
      latencyUs: clock.nowUs() - startUs,
      allowedUs,
      token,
      errorCost: teaches && (errorCost ?? this.#options.errorCost ?? false),
      neighbours: this.#host,
      deferMs: Math.min(askedMs, maxRetryAfterMs),
    });
  }

  /** An answer that the caller has already did not come to its end. */
  #brokeOff(current: Try, error: unknown): void {
    const { breaker, signal } = this.#options;
    if (this.#active.has(current) || breaker === false || signal?.aborted) return;
    const { outcome } = this.#verdictOf(current, { ok: false, error });
    if (outcome !== 'failure') return;
    const errorCost = this.#host.options.errorCost ?? this.#options.errorCost ?? false;
    const { endpoint, token } = current;
    endpoint.brokeOff(errorCost ? token : NO_TOKEN, this.#host);
  }

  /** Holds on to an end that may yet become the call's; the one before will not. */
  #keep(ended: Ended<T>): void {
    if (this.#last !== undefined && this.#last !== ended) this.#discard(this.#last);
    this.#last = ended;
  }

  #finish(ended: Ended<T>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { timers } = this.#host.options;
    timers.clearTimeout(this.#deadline);
    timers.clearTimeout(this.#backup);
    timers.clearTimeout(this.#pause);
    this.#stopListening?.();
    this.#abortAll(new DOMException('another try has answered', 'AbortError'));
    if (this.#last !== undefined && this.#last !== ended) this.#discard(this.#last);
    this.#host.finished(this);
    if (ended.ok) this.#resolve(ended.value);
    else this.#reject(ended.error);
  }

  #discard(ended: Ended<T>): void {
    const { discard } = this.#options;
    if (discard !== undefined) tell(discard, ended); // it was about to be forgotten anyway
  }
}

/** Runs one try to its end, whatever the function does. */
async function settled<T>(tryFn: TryFn<T>, attempt: Attempt): Promise<Ended<T>> {
  try {
    return { ok: true, value: await tryFn(attempt) };
  } catch (error) {
    return { ok: false, error };
  }
}
