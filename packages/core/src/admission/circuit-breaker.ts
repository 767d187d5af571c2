import {
  type Breaker,
  type BreakerChange,
  type BreakerState,
  NO_TOKEN,
} from '../breaker/breaker.js';
import type { BreakerCluster } from '../breaker/breaker-cluster.js';
import {
  ERROR_COST_RULES,
  type ErrorCostOptions,
  STRICT_BREAKER_RULES,
  type StrictBreakerOptions,
} from '../breaker/breaker-options.js';
import { type BreakerOptions, createBreaker } from '../breaker/create.js';
import { type Clock, systemClock } from '../clock.js';
import { BreakerOpenError, TimeoutError, withoutStack } from '../errors.js';
import { type OnEvent, quiet, tell } from '../events.js';
import type { BreakerSnapshot } from '../metrics/snapshot.js';
import {
  type FlagSnapshot,
  functionOf,
  having,
  knownKeys,
  numberIn,
  objectOf,
  show,
  textOf,
} from '../options.js';
import type { Outcome } from '../outcome.js';
import { type Random, systemRandom } from '../random.js';
import { systemTimers, type TimerHandle, type Timers } from '../timers.js';
import { isOwnRefusal, outcomeOfError, outcomeOfValue } from './call-outcome.js';
import { type CallContext, call, LazyContext } from './execute.js';
import { onAbort } from './on-abort.js';
import { processRegistry, type Registry, type SnapshotSource } from './registry.js';

/** What a breaker is besides its numbers. */
export interface CircuitBreakerSettings {
  /** Shown in snapshots, events and errors. @default 'breaker' */
  readonly name?: string | undefined;
  /**
   * True if what a call threw, or returned, is the fault of the thing called. Refusals by inner guards and breakers
   * and aborts by the caller's `signal` are never asked about. By default: errors, timeouts and statuses of 5xx are;
   * 4xx, cancels, and answers marked ELIMIT are not. One that throws counts as true.
   */
  readonly isFailure?: ((errorOrResult: unknown) => boolean) | undefined;
  /** Time a call may take, in milliseconds, above 0 and up to 86 400 000. No bound by default. */
  readonly timeoutMs?: number | undefined;
  /** The breakers of the other nodes of the same service: `createBreakerCluster()`. Not with `strict`. */
  readonly cluster?: BreakerCluster | undefined;
  /** Hears changes of state, refusals (at most one event a second) and changed options. */
  readonly onEvent?: OnEvent | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** Jitters isolations. @default systemRandom */
  readonly random?: Random | undefined;
  /** @default systemTimers */
  readonly timers?: Timers | undefined;
  /** Where it is listed; `false` for nowhere. @default processRegistry() */
  readonly registry?: Registry | false | undefined;
}

/** The breaker's settings and its numbers, of the default grade or, with `strict: true`, of brpc's own. */
export type CircuitBreakerOptions = CircuitBreakerSettings & BreakerOptions;

/** What `execute` may be told of one call. */
export interface BreakerCallOptions<F = never> {
  /** The caller's own signal. When it aborts, the call rejects at once with its reason; that is held against nobody, unless the reason is a timeout. */
  readonly signal?: AbortSignal | undefined;
  /** Time this call may take, in milliseconds, above 0; replaces the breaker's own. */
  readonly timeoutMs?: number | undefined;
  /** Answers instead when the call was refused or failed; called at most once, with the error. Not for the caller's own abort. */
  readonly fallback?: ((error: unknown) => F | PromiseLike<F>) | undefined;
}

/** What listeners of `on` are told. */
export interface BreakerNotice {
  readonly name: string;
  /** What moved it; `open` for a refusal. */
  readonly cause: string;
  /** Length of the isolation, in milliseconds, for `open`; when to ask again for `reject`; else 0. */
  readonly forMs: number;
}

/** What `on` takes. */
export type BreakerEventName = 'open' | 'halfOpen' | 'close' | 'reject';
/** Hears of a breaker's changes and refusals; what it throws is dropped. */
export type BreakerListener = (notice: BreakerNotice) => void;

/** Every option of both grades; which belong to which, the engine says. */
const KNOWN: object = {
  name: true,
  isFailure: true,
  timeoutMs: true,
  cluster: true,
  onEvent: true,
  clock: true,
  random: true,
  timers: true,
  registry: true,
  strict: true,
  smooth: true,
  ...ERROR_COST_RULES,
  ...STRICT_BREAKER_RULES,
};
const CALL_OPTIONS = { signal: true, timeoutMs: true, fallback: true };
const LONGEST_TIMEOUT_MS = 86_400_000;
/** A refusal is told through `onEvent` at most this often. */
const TELL_EVERY_US = 1_000_000;

/**
 * Stops calling what is broken. Counts what failures cost; when that is too much it opens, refuses for a while,
 * lets a few trial calls through, and then ramps up. See `docs/breaker.md`.
 *
 * ```ts
 * const breaker = new CircuitBreaker({ name: 'search' });
 * await breaker.execute(({ signal }) => fetch(url, { signal }), { timeoutMs: 800, fallback: () => cached });
 * ```
 */
export class CircuitBreaker implements SnapshotSource {
  // set once
  readonly name: string;
  readonly #engine: Breaker;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #isFailure: ((errorOrResult: unknown) => boolean) | undefined;
  readonly #onEvent: OnEvent | undefined;
  readonly #listeners: Record<BreakerEventName, Set<BreakerListener>> = {
    open: new Set(),
    halfOpen: new Set(),
    close: new Set(),
    reject: new Set(),
  };
  // moves when configured
  #timeoutMs: number | undefined;
  // moves with every call
  #success = 0;
  #failure = 0;
  #ignored = 0;
  #abandoned = 0;
  #rejected = 0;
  #untold = 0;
  #tellFromUs = Number.NEGATIVE_INFINITY;

  /** @throws TypeError or RangeError for unknown options and bad values */
  constructor(options: CircuitBreakerOptions = {}) {
    knownKeys('breaker', options, KNOWN);
    const { name, isFailure, timeoutMs, cluster, onEvent, clock, random, timers, ...rest } =
      options;
    const { registry, ...numbers } = rest;
    this.name = name === undefined ? 'breaker' : textOf('breaker.name', name);
    this.#isFailure =
      isFailure === undefined ? undefined : functionOf('breaker.isFailure', isFailure);
    this.#timeoutMs = checkedTimeout('breaker.timeoutMs', timeoutMs);
    this.#onEvent = quiet(
      onEvent === undefined ? undefined : functionOf('breaker.onEvent', onEvent),
    );
    this.#clock = having('breaker.clock', clock ?? systemClock, ['nowUs']);
    this.#timers = having('breaker.timers', timers ?? systemTimers, ['setTimeout', 'clearTimeout']);
    if (cluster !== undefined && numbers.strict === true) {
      throw new TypeError(
        'breaker.cluster belongs to the default grade only, not to { strict: true }',
      );
    }
    this.#engine = createBreaker(numbers, {
      random: functionOf('breaker.random', random ?? systemRandom),
      cluster: cluster === undefined ? cluster : having('breaker.cluster', cluster, ['join']),
      onChange: (change) => this.#changed(change),
    });
    if (registry !== false) {
      having('breaker.registry', registry ?? processRegistry(), ['add']).add(this);
    }
  }

  get state(): BreakerState {
    return this.#engine.state(this.#clock.nowUs());
  }

  /**
   * Calls `fn` if the breaker lets it. Its `signal` aborts when this call times out or its caller aborts, and for no
   * other reason.
   *
   * @throws BreakerOpenError (`ERR_BREAKER_OPEN`) when refused; `fn` is not called
   * @throws TimeoutError (`ERR_TIMEOUT`) after `timeoutMs`; a trial call also after `trialTimeoutMs`
   * @throws the reason of `signal`, when that aborts first
   */
  async execute<T, F = never>(
    fn: (context: CallContext) => T | PromiseLike<T>,
    options?: BreakerCallOptions<F>,
  ): Promise<T | F> {
    if (options !== undefined) return await this.#executeWith(fn, checkedCall(options));
    const startUs = this.#clock.nowUs();
    const token = this.#engine.tryCall(startUs);
    if (token === NO_TOKEN) throw this.#refused(startUs);
    if (this.#timeoutMs !== undefined || this.#engine.isTrial(token)) {
      return await this.#runBounded(fn, token, startUs, this.#timeoutMs, undefined);
    }
    let value: T;
    try {
      value = await fn(new LazyContext());
    } catch (error) {
      this.#record(this.#outcomeOf(error, outcomeOfError), token, startUs);
      throw error;
    }
    const outcome = this.#outcomeOf(value, outcomeOfValue);
    if (outcome === 'success' && this.#engine.recordUntimed(token)) this.#success += 1;
    else this.#record(outcome, token, startUs);
    return value;
  }

  /** `fn` with every call of it going through `execute`. */
  wrap<This, Args extends unknown[], T, F = never>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
    options?: BreakerCallOptions<F>,
  ): (this: This, ...args: Args) => Promise<T | F> {
    functionOf('wrap', fn);
    const checked = options === undefined ? undefined : checkedCall(options);
    const execute = (run: () => T | PromiseLike<T>): Promise<T | F> =>
      checked === undefined ? this.execute(run) : this.#executeWith(run, checked);
    const guarded = function (this: This, ...args: Args): Promise<T | F> {
      return execute(() => fn.apply(this, args));
    };
    // frameworks read these two
    Object.defineProperty(guarded, 'name', { value: fn.name, configurable: true });
    Object.defineProperty(guarded, 'length', { value: fn.length, configurable: true });
    return guarded;
  }

  /** Opens by hand, until `reset`. */
  forceOpen(): void {
    this.#engine.forceOpen(this.#clock.nowUs());
  }

  /** Closes, with nothing held against the thing called. In the strict grade: brpc's reset, half-open first if that is on. */
  reset(): void {
    this.#engine.reset(this.#clock.nowUs());
  }

  /** Calls back after each change of state, or each refusal. The function returned takes the listener off again. */
  on(event: BreakerEventName, listener: BreakerListener): () => void {
    if (!Object.hasOwn(this.#listeners, event)) {
      throw new RangeError(
        `breaker.on takes ${Object.keys(this.#listeners).join(', ')}, got ${show(event)}`,
      );
    }
    const listeners = this.#listeners[event];
    listeners.add(functionOf('breaker.on listener', listener));
    return () => {
      listeners.delete(listener);
    };
  }

  snapshot(): BreakerSnapshot {
    const nowUs = this.#clock.nowUs();
    const engine = this.#engine;
    return {
      type: 'breaker',
      name: this.name,
      state: engine.state(nowUs),
      rampRatio: engine.rampRatio(nowUs),
      isolationLeftMs: engine.isolationLeftUs(nowUs) / 1000,
      isolationMs: engine.isolationUs / 1000,
      opened: engine.opened,
      outcomes: {
        success: this.#success,
        failure: this.#failure,
        ignored: this.#ignored,
        abandoned: this.#abandoned,
      },
      rejected: this.#rejected,
      meanLatencyUs: engine.meanLatencyUs,
      errorCostRatio: engine.errorCostRatio,
    };
  }

  /**
   * Changes numbers while running; `timeoutMs: undefined` takes the bound off.
   *
   * @throws TypeError or RangeError; then nothing has changed
   */
  configure(
    partial: (ErrorCostOptions | StrictBreakerOptions) & Pick<CircuitBreakerSettings, 'timeoutMs'>,
  ): void {
    const { timeoutMs, ...numbers } = objectOf('breaker', partial);
    checkedTimeout('breaker.timeoutMs', timeoutMs);
    this.#engine.configure(numbers);
    if (Object.hasOwn(partial, 'timeoutMs')) this.#timeoutMs = timeoutMs;
    this.#onEvent?.({ type: 'configure', name: this.name, changed: { ...partial } });
  }

  flags(): readonly FlagSnapshot[] {
    return [
      ...this.#engine.flags(),
      {
        name: 'timeoutMs',
        value: this.#timeoutMs ?? null,
        default: null,
        live: true,
      },
    ];
  }

  async #executeWith<T, F>(
    fn: (context: CallContext) => T | PromiseLike<T>,
    options: BreakerCallOptions<F>,
  ): Promise<T | F> {
    const { signal, timeoutMs, fallback } = options;
    signal?.throwIfAborted();
    try {
      const startUs = this.#clock.nowUs();
      const token = this.#engine.tryCall(startUs);
      if (token === NO_TOKEN) throw this.#refused(startUs);
      return await this.#runBounded(fn, token, startUs, timeoutMs ?? this.#timeoutMs, signal);
    } catch (error) {
      if (fallback === undefined || signal?.aborted === true) throw error;
      return await fallback(error);
    }
  }

  /** The caller gets the first of three: the function's end, the timeout, the abort. What comes later counts for nothing. */
  #runBounded<T>(
    fn: (context: CallContext) => T | PromiseLike<T>,
    token: number,
    startUs: number,
    ownTimeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const trialMs = this.#engine.isTrial(token)
      ? this.#engine.trialTimeoutUs / 1000
      : Number.POSITIVE_INFINITY;
    const timeoutMs = Math.min(ownTimeoutMs ?? Number.POSITIVE_INFINITY, trialMs);
    return new Promise<T>((resolve, reject) => {
      const context = new LazyContext();
      let timer: TimerHandle;
      let isOver = false;

      const end = (outcome: Outcome): void => {
        isOver = true;
        if (timer !== undefined) this.#timers.clearTimeout(timer);
        forgetSignal?.();
        this.#record(outcome, token, startUs);
      };
      const cut = (outcome: Outcome, reason: unknown): void => {
        end(outcome);
        // the caller first: a listener of the context's signal may throw, or call back in
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's own reason, whatever it is
        reject(reason);
        context.end(reason);
      };
      if (timeoutMs < Number.POSITIVE_INFINITY) {
        timer = this.#timers.setTimeout(() => {
          timer = undefined;
          cut('failure', new TimeoutError(this.name, timeoutMs));
        }, timeoutMs);
      }
      // `AbortSignal.timeout` is the caller's way to say that the answer took too long
      const forgetSignal =
        signal === undefined
          ? undefined
          : onAbort(signal, () =>
              cut(isTimeout(signal.reason) ? 'failure' : 'abandoned', signal.reason),
            );

      const work = call(fn, context);
      const ended = (outcome: Outcome): void => {
        end(outcome);
        resolve(work);
      };
      work.then(
        (value) => isOver || ended(this.#outcomeOf(value, outcomeOfValue)),
        (error: unknown) => isOver || ended(this.#outcomeOf(error, outcomeOfError)),
      );
    });
  }

  #outcomeOf(settled: unknown, byDefault: (settled: unknown) => Outcome): Outcome {
    const isFailure = this.#isFailure;
    if (isFailure === undefined) return byDefault(settled);
    if (isOwnRefusal(settled)) return 'ignored';
    try {
      return isFailure(settled) ? 'failure' : 'success';
    } catch {
      return 'failure';
    }
  }

  #record(outcome: Outcome, token: number, startUs: number): void {
    const nowUs = this.#clock.nowUs();
    if (outcome === 'success') this.#success += 1;
    else if (outcome === 'failure') this.#failure += 1;
    else if (outcome === 'ignored') this.#ignored += 1;
    else this.#abandoned += 1;
    this.#engine.record(outcome, nowUs - startUs, nowUs, token);
  }

  #refused(nowUs: number): BreakerOpenError {
    const retryAfterMs = Math.ceil(this.#engine.retryAfterUs(nowUs) / 1000);
    this.#rejected += 1;
    this.#untold += 1;
    if (nowUs >= this.#tellFromUs) {
      const count = this.#untold;
      this.#untold = 0;
      this.#tellFromUs = nowUs + TELL_EVERY_US;
      this.#onEvent?.({ type: 'reject', name: this.name, reason: 'open', count });
    }
    this.#tell('reject', 'open', retryAfterMs);
    return withoutStack(() => new BreakerOpenError(this.name, retryAfterMs));
  }

  #changed({ state, cause, isolationUs }: BreakerChange): void {
    const type = state === 'closed' ? 'close' : state;
    const isolationMs = isolationUs / 1000;
    this.#onEvent?.({ type, name: this.name, cause, isolationMs });
    this.#tell(type, cause, isolationMs);
  }

  #tell(event: BreakerEventName, cause: string, forMs: number): void {
    for (const listener of this.#listeners[event])
      tell(listener, { name: this.name, cause, forMs });
  }
}

/** `new CircuitBreaker(options)`, for those who prefer functions. */
export function createCircuitBreaker(options: CircuitBreakerOptions = {}): CircuitBreaker {
  return new CircuitBreaker(options);
}

function checkedCall<F>(options: BreakerCallOptions<F>): BreakerCallOptions<F> {
  const { signal, timeoutMs, fallback } = objectOf('execute options', options);
  knownKeys('execute', options, CALL_OPTIONS);
  checkedTimeout('execute.timeoutMs', timeoutMs);
  if (signal !== undefined)
    having('execute.signal', signal, ['addEventListener', 'throwIfAborted']);
  if (fallback !== undefined) functionOf('execute.fallback', fallback);
  return options;
}

function checkedTimeout(name: string, timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined) return undefined;
  return numberIn(name, timeoutMs, Number.MIN_VALUE, LONGEST_TIMEOUT_MS);
}

/** By its name: an `instanceof` fails for reasons of another realm. */
function isTimeout(reason: unknown): boolean {
  if (typeof reason !== 'object' || reason === null) return false;
  return (reason as { name?: unknown }).name === 'TimeoutError';
}
