import { rejected, TimeoutError } from '../errors.js';
import { having, knownKeys, numberIn, objectOf, oneOf } from '../options.js';
import type { Outcome } from '../outcome.js';
import type { TimerHandle, Timers } from '../timers.js';
import { isOwnRefusal } from './call-outcome.js';
import { onAbort } from './on-abort.js';
import type { Entry, Permit } from './permit.js';
import { PRIORITIES, type Priority } from './priority.js';

/** What `execute` may be told of one call. */
export interface ExecuteOptions {
  /**
   * Time the call may take, in milliseconds, at least 0. It is refused if that cannot be held, and rejected with
   * {@link TimeoutError} once it has passed; the slot returns when the function settles. No bound by default.
   */
  readonly timeoutMs?: number | undefined;
  /** The caller's own signal. When it aborts, the call rejects at once with its reason and counts as abandoned. */
  readonly signal?: AbortSignal | undefined;
  /** @default 'default' */
  readonly priority?: Priority | undefined;
}

/** What a guarded function is handed. */
export interface CallContext {
  /** Aborts when the call times out, or when its caller aborts. Made when first read. */
  readonly signal: AbortSignal;
}

/** A context whose signal is made when somebody looks at it: most functions never do. */
export class LazyContext implements CallContext {
  #controller: AbortController | undefined;
  #ended = false;
  #reason: unknown;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  end(reason: unknown): void {
    this.#ended = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}

/** What an exception says of our own load: an inner refusal says nothing. */
function outcomeOf(error: unknown): Outcome {
  return isOwnRefusal(error) ? 'ignored' : 'failure';
}

/** What `executeGuarded` needs of a guard. */
interface Admitting {
  readonly name: string;
  tryAcquire(options?: ExecuteOptions): Entry;
}

/** Runs `fn` under a permit of the guard, by the rules of `Guard.execute`. */
export function executeGuarded<T>(
  guard: Admitting,
  fn: (context: CallContext) => T | PromiseLike<T>,
  options: ExecuteOptions | undefined,
  timers: Timers,
): Promise<T> {
  // one promise for a plain call: each further one costs as much as all the rest
  return options === undefined
    ? run(guard.tryAcquire(), fn)
    : executeWith(guard, fn, options, timers);
}

async function executeWith<T>(
  guard: Admitting,
  fn: (context: CallContext) => T | PromiseLike<T>,
  options: ExecuteOptions,
  timers: Timers,
): Promise<T> {
  const { timeoutMs, signal, priority } = checked(options);
  signal?.throwIfAborted();
  const entry = guard.tryAcquire({ timeoutMs, priority });
  if (timeoutMs === undefined && signal === undefined) return await run(entry, fn);
  if (!entry.admitted) throw rejected(entry);
  return await runBounded(entry, fn, guard.name, timeoutMs, signal, timers);
}

const KNOWN = { timeoutMs: true, signal: true, priority: true };

function checked(options: ExecuteOptions): ExecuteOptions {
  const { timeoutMs, signal, priority } = objectOf('execute options', options);
  knownKeys('execute', options, KNOWN);
  if (timeoutMs !== undefined) numberIn('execute.timeoutMs', timeoutMs, 0, Number.MAX_SAFE_INTEGER);
  if (priority !== undefined) oneOf('execute.priority', priority, PRIORITIES);
  if (signal !== undefined)
    having('execute.signal', signal, ['addEventListener', 'throwIfAborted']);
  return options;
}

async function run<T>(entry: Entry, fn: (context: CallContext) => T | PromiseLike<T>): Promise<T> {
  if (!entry.admitted) throw rejected(entry);
  let value: T;
  try {
    value = await fn(new LazyContext());
  } catch (error) {
    entry.release(outcomeOf(error));
    throw error;
  }
  entry.release('success');
  return value;
}

/** The caller gets the first of three: the function's end, the timeout, the abort. The permit waits for the function. */
function runBounded<T>(
  permit: Permit,
  fn: (context: CallContext) => T | PromiseLike<T>,
  name: string,
  timeoutMs: number | undefined,
  signal: AbortSignal | undefined,
  timers: Timers,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const context = new LazyContext();
    let timer: TimerHandle;
    /** Set once the caller has its answer before the function had one. */
    let cutShort: Outcome | undefined;

    const forget = (): void => {
      if (timer !== undefined) timers.clearTimeout(timer);
      timer = undefined;
      forgetSignal?.();
    };
    const cut = (outcome: Outcome, reason: unknown): void => {
      cutShort = outcome;
      forget();
      // the caller first: a listener of the context's signal may throw, or call back in
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's own reason, whatever it is
      reject(reason);
      context.end(reason);
    };
    if (timeoutMs !== undefined) {
      timer = timers.setTimeout(() => {
        timer = undefined;
        cut('failure', new TimeoutError(name, timeoutMs));
      }, timeoutMs);
    }
    const forgetSignal =
      signal === undefined ? undefined : onAbort(signal, () => cut('abandoned', signal.reason));

    const work = call(fn, context);
    const ended = (outcome: Outcome): void => {
      permit.release(cutShort ?? outcome);
      if (cutShort !== undefined) return;
      forget();
      resolve(work);
    };
    work.then(
      () => ended('success'),
      (error: unknown) => ended(outcomeOf(error)),
    );
  });
}

/** A synchronous exception becomes a rejection. */
export async function call<T>(
  fn: (context: CallContext) => T | PromiseLike<T>,
  context: CallContext,
): Promise<T> {
  return await fn(context);
}
