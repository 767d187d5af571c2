import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Clock,
  createGuard,
  type Guard,
  type Guards,
  type MaxConcurrency,
  type OnEvent,
  type Permit,
  type Priority,
  type Rejection,
  systemClock,
  tell,
} from '@elimit/core';
import { arrivalOf } from './arrival.js';
import { timeoutOf } from './deadline-headers.js';
import { dispatch } from './dispatch.js';
import type { DispatchPermit } from './dispatch-queue.js';
import { loopMonitor } from './dispatch-thread.js';
import {
  createEndings,
  type Endings,
  endCalls,
  holdsSlot,
  isRefused,
  markRefused,
  releaseWhenDone,
} from './ending.js';
import {
  type LimitOptions,
  type ResolvedLimitOptions,
  resolveLimitOptions,
} from './limit-options.js';
import { writeRejection } from './write-rejection.js';

/** What `limit` takes: a max-concurrency value, or a guard or guards made before. */
export type LimitTarget = MaxConcurrency | Guard | Guards;

/** Goes on to the handler; with an error, to the framework's error handling. */
export type Next = (error?: unknown) => void;

/**
 * What a limit says of a request: `go`; or its rejection, which its asker answers; or `gone`, if the client left
 * or was answered while the request waited in the dispatch queue: its handler must not start.
 */
export type LimitVerdict = 'go' | 'gone' | Rejection;

/** What an adapter adds to a {@link RequestLimit}. */
export interface LimitAdapter<Req extends IncomingMessage> {
  /** The name of a guard that was given none. */
  readonly defaultName: string;
  /**
   * The name of this request's method among `createGuards`: from the route's template, never from a URL.
   * `undefined` where it has none; the user is then told to give a `name`.
   */
  methodNameOf(req: Req): string | undefined;
}

/** Requests that must have come before a limit does, one after the other, until it is called made per request. */
const MADE_LATE = 3;

/** Limits made while a request was waiting for them already, by name; and who has been told. */
const madeLate = new Map<string, number>();

/** One `limit(…)`: what Express, Koa, Nest and bare servers share. Made once, asked for every request. */
export class RequestLimit<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> {
  // set once
  readonly #owner: Guard | Guards;
  readonly #guard: Guard | undefined;
  readonly #options: LimitOptions<Req, Res>;
  readonly #resolved: ResolvedLimitOptions;
  readonly #adapter: LimitAdapter<Req>;
  readonly #clock: Clock;
  readonly #bornUs = systemClock.nowUs();
  /** The ending rules of each guard: as many as there are methods. */
  readonly #endings = new Map<Guard, Endings>();
  // written anew for each call, so that asking costs no allocation
  readonly #ask = {
    timeoutMs: undefined as number | undefined,
    priority: 'default' as Priority,
    arrivedUs: 0,
  };
  readonly #dispatch = {
    timeoutMs: undefined as number | undefined,
    priority: 'default' as Priority,
    dispatch: true,
    maxQueued: 0,
  };
  #met = false;

  /** @throws TypeError or RangeError that names the option, its range and the value */
  constructor(target: LimitTarget, options: LimitOptions<Req, Res>, adapter: LimitAdapter<Req>) {
    const readyMade = isReadyMade(target);
    this.#resolved = resolveLimitOptions(options, readyMade);
    this.#options = options;
    this.#adapter = adapter;
    this.#clock = options.clock ?? systemClock;
    this.#dispatch.dispatch = this.#resolved.dispatch;
    this.#dispatch.maxQueued = this.#resolved.maxQueued;
    this.#owner = readyMade ? target : makeGuard(target, options, adapter);
    this.#guard = isGuards(this.#owner) ? undefined : this.#owner;
  }

  /** The guard that stands behind it; `undefined` if there is one for each method. */
  get guard(): Guard | undefined {
    return this.#guard;
  }

  /**
   * Admits a request and lets it go on, or answers it: for frameworks of callbacks.
   *
   * @param next - goes on to the handler, from the dispatch queue if there is one; called at most once. With what a
   *   callback of the options throws: `protect` has no framework around it that would catch it
   */
  handle(req: Req, res: Res, next: Next): void {
    let guard: Guard | undefined;
    try {
      guard = this.#guardFor(req, res);
    } catch (error) {
      next(error);
      return;
    }
    if (guard === undefined) {
      next();
      return;
    }
    const entry = guard.tryAcquire(this.#ask);
    if (!entry.admitted) {
      this.#refuse(req, res, entry, next); // the path of an overload: nothing is made for it but the answer
      return;
    }
    const refuse = (rejection: Rejection): void => this.#refuse(req, res, rejection, next);
    this.#enter(guard, entry, req, res, next, refuse, undefined);
  }

  /**
   * Admits a request, or tells why not: for frameworks of promises. At once, or, through the dispatch queue, when
   * the handler's turn has come. What holds the promise goes on in its own async context.
   *
   * @throws what a callback of the options throws
   */
  admit(req: Req, res: Res): LimitVerdict | Promise<LimitVerdict> {
    const guard = this.#guardFor(req, res);
    if (guard === undefined) return 'go';
    const entry = guard.tryAcquire(this.#ask);
    if (!entry.admitted) return entry;
    let verdict: LimitVerdict | undefined;
    let settle: ((verdict: LimitVerdict) => void) | undefined;
    const decide = (told: LimitVerdict): void => {
      verdict = told;
      settle?.(told);
    };
    this.#enter(
      guard,
      entry,
      req,
      res,
      () => decide('go'),
      decide,
      () => decide('gone'),
    );
    return (
      verdict ??
      new Promise<LimitVerdict>((resolve) => {
        settle = resolve;
      })
    );
  }

  /** Whom to ask for this request, with all that is asked; `undefined` if it goes on unasked. */
  #guardFor(req: Req, res: Res): Guard | undefined {
    const { skip, priority } = this.#options;
    // stamped even if it is skipped: the loop has seen it
    const stampUs = arrivalOf(req);
    if (!this.#met) this.#meet(stampUs);
    if (holdsSlot(res, this.#owner) || skips(skip?.(req, res))) return undefined;
    const guard = this.#guard ?? this.#guardOf(req);
    if (this.#guard === undefined && holdsSlot(res, guard)) return undefined;
    const ask = this.#ask;
    // an injected clock knows nothing of the stamp, which is the system clock's
    ask.arrivedUs = this.#clock === systemClock ? stampUs : this.#clock.nowUs();
    ask.timeoutMs = this.#timeoutOf(req);
    ask.priority = priority === undefined ? 'default' : priority(req);
    return guard;
  }

  /**
   * An admitted request goes on, in its turn; `#ask` is still about it.
   *
   * @param gone - told if the handler will never start, though nobody has refused it
   */
  #enter(
    guard: Guard,
    permit: Permit,
    req: Req,
    res: Res,
    start: () => void,
    refuse: (rejection: Rejection) => void,
    gone: (() => void) | undefined,
  ): void {
    const ask = this.#ask;
    releaseWhenDone(req, res, permit, this.#endingsOf(guard), ask.arrivedUs);
    const how = this.#dispatch;
    how.timeoutMs = ask.timeoutMs;
    how.priority = ask.priority;
    dispatch(
      req,
      res,
      gone === undefined ? permit : tellingWhoLeft(permit, gone),
      () => {
        if (isRefused(res)) gone?.();
        else start();
      },
      (rejection) => {
        // a dry run lets through what the dispatch queue refuses, too
        if (guard.dryRun) start();
        else refuse(rejection);
      },
      how,
    );
  }

  #timeoutOf(req: Req): number | undefined {
    const { timeoutMs, deadlineHeaders } = this.#resolved;
    const carriedMs = timeoutOf(req, deadlineHeaders);
    if (carriedMs === undefined) return timeoutMs;
    return timeoutMs === undefined ? carriedMs : Math.min(carriedMs, timeoutMs);
  }

  #guardOf(req: Req): Guard {
    const name = this.#options.name ?? this.#adapter.methodNameOf(req);
    if (name === undefined) {
      throw new TypeError(
        'limit(guards) takes its name from a route; on an app, a router, or a mount with parameters it needs { name }',
      );
    }
    return (this.#owner as Guards).guardOf(name);
  }

  #endingsOf(guard: Guard): Endings {
    let endings = this.#endings.get(guard);
    if (endings === undefined) {
      endings = createEndings(this.#owner, guard, this.#resolved.ending, {
        // its handler has started: there is nowhere to go on to
        refuse: (req, res, rejection) => this.#refuse(req as Req, res as Res, rejection, () => {}),
        blindUs: () => loopMonitor().blindUs(),
      });
      this.#endings.set(guard, endings);
    }
    return endings;
  }

  #refuse(req: Req, res: Res, rejection: Rejection, next: Next): void {
    const { handler } = this.#options;
    if (handler === undefined) {
      endCalls(res); // of guards further out: this is an answer of ours, and says nothing of their load
      writeRejection(res, rejection, this.#options);
      return;
    }
    markRefused(res, true);
    const goOn: Next = (error) => {
      markRefused(res, false); // it goes on after all
      next(error);
    };
    // called from the dispatch queue there is no framework around it to catch anything
    try {
      const answered = handler(req, res, rejection, goOn);
      if (answered instanceof Promise) answered.catch(goOn);
    } catch (error) {
      goOn(error);
    }
  }

  /** The first request. */
  #meet(stampUs: number): void {
    this.#met = true;
    loopMonitor().watch(this.#owner);
    if (this.#bornUs > stampUs) warnOfMakingPerRequest(this.#name, this.#options.onEvent);
  }

  get #name(): string {
    return this.#guard?.name ?? this.#options.name ?? this.#adapter.defaultName;
  }
}

/** What `skip` says; from untyped code it may be a promise, which would be taken for a no. */
export function skips(answer: unknown): boolean {
  if (answer instanceof Promise) {
    answer.catch(() => {});
    throw new TypeError('limit.skip must answer true or false at once, got a promise');
  }
  return answer === true;
}

/** The dispatch queue releases the permits of clients that left while they waited, and tells nobody else. */
function tellingWhoLeft(permit: Permit, gone: () => void): DispatchPermit {
  return {
    abandon() {
      permit.abandon();
      gone();
    },
    revoke: (reason) => permit.revoke(reason),
  };
}

/** A limit made inside a handler counts to one, and never refuses anything. */
function warnOfMakingPerRequest(name: string, onEvent: OnEvent | undefined): void {
  const times = (madeLate.get(name) ?? 0) + 1;
  madeLate.set(name, times);
  if (times !== MADE_LATE) return;
  const code = 'WARN_LIMIT_PER_REQUEST';
  const message = `limit(…) named ${name} is made anew for each request: make it once, outside of the handler`;
  if (onEvent === undefined) {
    process.emitWarning(message, { type: 'ElimitWarning', code });
    return;
  }
  tell(onEvent, { type: 'warning', code, name, message });
}

function makeGuard<Req extends IncomingMessage, Res extends ServerResponse>(
  limit: MaxConcurrency,
  options: LimitOptions<Req, Res>,
  adapter: LimitAdapter<Req>,
): Guard {
  const { name = adapter.defaultName, dryRun, onEvent, clock, random, timers, registry } = options;
  return createGuard({ limit, name, dryRun, onEvent, clock, random, timers, registry });
}

/** True for a set of guards; the target may come from untyped code, as below. */
export function isGuards(target: unknown): target is Guards {
  return isReadyMade(target) && 'guardOf' in target;
}

/** True for a guard or guards made before. */
export function isReadyMade(target: unknown): target is Guard | Guards {
  return typeof target === 'object' && target !== null && 'tryAcquire' in target;
}
