import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Outcome, Permit, Rejection } from '@elimit/core';
import { type BodyWatch, bodyWatchOf, hasArrived } from './ending-body.js';
import type { ResolvedEndingOptions } from './ending-options.js';
import { SWEEP_MS, type Sweep, type Swept, sweepOf } from './ending-sweep.js';
import { giveEarly } from './request-keys.js';

const WATCH: unique symbol = Symbol('elimit.watch');
const RESPONSE: unique symbol = Symbol('elimit.response');

type Method = (this: ServerResponse, ...args: unknown[]) => ServerResponse;

/** The two methods that are watched, as properties: another library may have put its own in place. */
interface Methods {
  end: Method;
  destroy: Method;
}

/** What is known of a response. */
class Watch {
  /** The innermost call in flight on it. */
  ending: Ending | undefined = undefined;
  /** It carries a refusal of ours. */
  refused = false;
  isWatched = false;
  /** What stood in the place of a method that is watched now. */
  ownEnd: Method | undefined = undefined;
  ownDestroy: Method | undefined = undefined;
}

interface WatchedResponse extends ServerResponse {
  [WATCH]?: Watch | undefined;
}

interface WatchedRequest extends IncomingMessage {
  [RESPONSE]?: ServerResponse;
}

/** What the rules need to know of a guard. */
export interface EndingGuard {
  readonly maxConcurrency: number;
  readonly dryRun: boolean;
  snapshot(): { readonly latency: { readonly meanUs: number } };
}

/** Answers a request that is refused after it was admitted: its body did not come, and others wait for theirs. */
export type Refuse = (req: IncomingMessage, res: ServerResponse, rejection: Rejection) => void;

/** The longest that `abandonedHoldMs: 'auto'` gets, in microseconds. */
const LONGEST_ABANDONED_US = 5_000_000;
const MEAN_FRESH_US = 1_000_000;
/** Uploads under way, by default, are half of the limit or this many: but one slot is left to other calls. */
const FEW_BODIES = 4;

/** The rules for giving slots back, of one guard, and the counts that they need. Made once, by {@link createEndings}. */
export class Endings {
  // set once
  /** Whom a request is counted by once, however often it comes past: the guard, or the guards it is one of. */
  readonly owner: object;
  readonly guard: EndingGuard;
  readonly options: ResolvedEndingOptions;
  readonly sweep: Sweep;
  readonly clock: Clock;
  readonly refuse: Refuse;
  readonly blindUs: () => number;
  readonly drainHoldUs: number;
  readonly maxHoldUs: number;
  readonly bodyHoldUs: number;
  // moves with every call that has a body or becomes a stream
  bodies = 0;
  streams = 0;
  #abandonedHoldUs = LONGEST_ABANDONED_US;
  #meanFreshUntilUs = 0;

  constructor(
    owner: object,
    guard: EndingGuard,
    options: ResolvedEndingOptions,
    seams: EndingSeams,
  ) {
    this.owner = owner;
    this.guard = guard;
    this.options = options;
    this.clock = options.clock;
    this.sweep = sweepOf(options.timers);
    this.refuse = seams.refuse;
    this.blindUs = seams.blindUs;
    this.drainHoldUs = options.drainHoldMs * 1000;
    this.maxHoldUs = options.maxHoldMs * 1000;
    this.bodyHoldUs = options.bodyHoldMs * 1000;
  }

  get maxBodies(): number {
    const { maxBodies } = this.options;
    if (maxBodies !== 'auto') return maxBodies;
    const { maxConcurrency } = this.guard;
    const few = Math.max(1, Math.min(FEW_BODIES, maxConcurrency - 1));
    return Math.max(few, Math.floor(maxConcurrency / 2));
  }

  /** How long a handler may go on after its client left, in microseconds. */
  abandonedHoldUs(nowUs: number): number {
    const { abandonedHoldMs } = this.options;
    if (abandonedHoldMs !== 'auto') return abandonedHoldMs * 1000;
    // a snapshot is dear, and under overload many clients leave at once
    if (nowUs >= this.#meanFreshUntilUs) {
      this.#meanFreshUntilUs = nowUs + MEAN_FRESH_US;
      const { meanUs } = this.guard.snapshot().latency;
      this.#abandonedHoldUs =
        meanUs > 0 ? Math.min(2 * meanUs, LONGEST_ABANDONED_US) : LONGEST_ABANDONED_US;
    }
    return this.#abandonedHoldUs;
  }
}

/** Where the rules touch the rest of this package. */
export interface EndingSeams {
  /** How a request is refused whose body is one too many. */
  readonly refuse: Refuse;
  /** How long the loop had not looked at its sockets before this turn, in microseconds. */
  readonly blindUs: () => number;
}

/** One admitted call on one response: waits for its end, and gives its slot back once. */
class Ending implements Swept {
  // set once
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly endings: Endings;
  readonly permit: Permit;
  /** The call of the guard in front of this one, on the same response. */
  readonly outer: Ending | undefined;
  readonly startedUs: number;
  readonly body: BodyWatch | undefined;
  // the sweep's
  before: Swept | undefined = undefined;
  after: Swept | undefined = undefined;
  // moves
  #done = false;
  #leftUs = -1;
  #drainStalledUs = 0;
  #drainStalledInARowUs = 0;
  #headersSeen = false;
  #isStream = false;
  #holdsBody = false;
  #bodyOverdue = false;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    permit: Permit,
    endings: Endings,
    startedUs: number,
    outer: Ending | undefined,
  ) {
    this.req = req;
    this.res = res;
    this.permit = permit;
    this.endings = endings;
    this.startedUs = startedUs;
    this.outer = outer;
    this.body = bodyWatchOf(req, endings.clock, endings.blindUs);
    if (this.body !== undefined) this.#takeBody(this.body);
    endings.sweep.add(this);
  }

  /** The call ends here and teaches nothing: a guard further in refuses it, or its client was too slow. */
  ignore(): void {
    if (!this.#done) this.#release('ignored');
  }

  /** The handler has ended writing. */
  ended(): void {
    if (!this.#done) this.#release(this.#outcome());
  }

  /** The handler has given up its response. */
  destroyed(): void {
    if (this.#done) return;
    const { req, res } = this;
    // Node 24 destroys a pipelined answer itself that is still waiting for its turn when its connection ends
    const byNode = req.httpVersionMajor === 1 && res.socket === null && req.socket.destroyed;
    if (byNode) this.closed();
    else this.#release(this.#hasLeft() ? 'abandoned' : 'failure');
  }

  /** The connection is gone, and the handler had not ended: it may still be running. */
  closed(): void {
    if (this.#isStream) {
      this.#isStream = false;
      this.endings.streams--;
    }
    if (this.#done || this.#leftUs >= 0) return;
    if (this.#destroyedByHandler()) {
      this.#release(this.#outcome());
      return;
    }
    this.#leftUs = this.endings.clock.nowUs();
    this.#leaveBody(); // no more of it will come
  }

  /** The sweep's look, every {@link SWEEP_MS}: all that no event tells. */
  look(): void {
    const nowUs = this.endings.clock.nowUs();
    const { res, endings, body } = this;
    if (this.#leftUs < 0 && res.socket === null && this.req.socket.destroyed) {
      this.closed(); // a pipelined answer that never got its turn hears of no close
    }
    if (this.#leftUs >= 0) {
      if (nowUs - this.#leftUs >= endings.abandonedHoldUs(nowUs)) this.#release('abandoned');
      return;
    }
    if (res.headersSent) {
      this.#lookAtHead(res);
      if (!this.#done && this.#holdsDrain()) this.#release(this.#outcome());
    }
    if (!this.#done && body !== undefined && !body.complete) {
      body.look(nowUs);
      if (!this.#bodyOverdue && body.stalledUs(nowUs) >= endings.bodyHoldUs) this.#timeOutBody();
    }
    if (!this.#done && nowUs - this.startedUs >= endings.maxHoldUs) this.#release('failure');
  }

  #outcome(): Outcome {
    if (isRefused(this.res)) return 'ignored';
    if (this.#destroyedByHandler()) return 'failure';
    if (this.#hasLeft()) return 'abandoned';
    try {
      return this.endings.options.isFailure(this.req, this.res) ? 'failure' : 'success';
    } catch {
      return 'failure'; // this runs inside of the handler's res.end(), and the slot must come back
    }
  }

  /** A body parser hears of it before the response does, and answers within that very event. */
  #hasLeft(): boolean {
    const { req } = this;
    // a reader that has read all destroys its request too
    return (
      this.#leftUs >= 0 || (req.destroyed && !req.readableEnded && !this.#destroyedByHandler())
    );
  }

  /**
   * True if the handler has destroyed its request before reading it all, or the connection: Express does, when a handler
   * fails after its headers.
   */
  #destroyedByHandler(): boolean {
    const { req, res } = this;
    if (req.httpVersionMajor !== 1) return false;
    // when a client leaves, Node destroys its request with this error
    if (req.destroyed && !req.readableEnded && req.errored?.message !== 'aborted') return true;
    const socket = req.socket as Socket & { readonly server?: Partial<Server> };
    // a client that leaves ends its side or breaks it; before its whole request, an end may be its fault anyway
    if (!socket.destroyed || socket.readableEnded || socket.errored !== null || !req.complete) {
      return false;
    }
    // the end may be that of an answer before this one in the pipeline, of the whole server, or of its patience
    if (res.socket !== socket || socket.server?.listening === false) return false;
    const lastedUs = this.endings.clock.nowUs() - this.startedUs;
    return !socket.timeout || lastedUs < socket.timeout * 1000;
  }

  #finish(): void {
    this.#done = true;
    this.endings.sweep.remove(this);
    this.#leaveBody();
  }

  /** Ends as a refusal, though a late one: it shows among its guard's refusals. */
  #revoke(): Rejection {
    this.#finish();
    return this.permit.revoke('concurrency');
  }

  #release(outcome: Outcome): void {
    this.#finish();
    const { endings, body } = this;
    const stalledUs =
      body === undefined
        ? 0
        : body.complete
          ? body.stalledUs(0)
          : body.stalledUs(endings.clock.nowUs());
    this.permit.release(outcome, stalledUs + this.#drainStalledUs);
  }

  /** Counts the time in which the client does not take what we write; true once it is too long. */
  #holdsDrain(): boolean {
    if (!this.res.writableNeedDrain) {
      this.#drainStalledInARowUs = 0;
      return false;
    }
    this.#drainStalledUs += SWEEP_MS * 1000;
    this.#drainStalledInARowUs += SWEEP_MS * 1000;
    return this.#drainStalledInARowUs >= this.endings.drainHoldUs;
  }

  /** An event stream or an upgrade leaves the limiter when it starts. */
  #lookAtHead(res: ServerResponse): void {
    if (this.#headersSeen) return;
    this.#headersSeen = true;
    if (!startsStream(res)) return;
    const { endings } = this;
    if (endings.streams >= endings.options.maxStreams && !endings.guard.dryRun) {
      this.#revoke();
      endCalls(res); // a guard further out learns nothing from it
      res.destroy(); // its headers are out: cutting it off is the only way left to say no
      return;
    }
    this.#release('ignored');
    this.#isStream = true;
    endings.streams++;
  }

  #takeBody(body: BodyWatch): void {
    const { endings } = this;
    if (body.complete) return;
    const oneTooMany = endings.bodies >= endings.maxBodies;
    this.#holdsBody = true;
    endings.bodies++;
    body.onComplete(() => this.#leaveBody());
    // A small body stands behind the headers in the same packet and is parsed before the loop goes on: only one that has
    // not come by then is held against its client. HTTP/2 parses it, but its stream tells only who reads it.
    if (oneTooMany || this.req.httpVersionMajor === 2) {
      setImmediate(() => setImmediate(() => this.#lookAtBody(oneTooMany)));
    }
  }

  #lookAtBody(oneTooMany: boolean): void {
    if (hasArrived(this.req)) this.#leaveBody();
    else if (oneTooMany) this.#refuseBody();
  }

  #leaveBody(): void {
    if (!this.#holdsBody) return;
    this.#holdsBody = false;
    this.endings.bodies--;
  }

  #refuseBody(): void {
    const { endings, req, res } = this;
    if (this.#done || !this.#holdsBody || endings.bodies <= endings.maxBodies) return;
    if (res.headersSent) return; // it is being served already
    if (endings.guard.dryRun) return;
    const rejection = this.#revoke();
    endCalls(res);
    res.on('error', ignoreError); // the handler may be waiting for the body, and write later
    res.on('finish', () => req.destroy());
    endings.refuse(req, res, rejection);
  }

  /** The handler reads a body that does not come: answers for it, and ends its reading. */
  #timeOutBody(): void {
    const { req, res } = this;
    this.#bodyOverdue = true;
    if (this.endings.guard.dryRun) return;
    endCalls(res);
    // from here on the handler's own answer comes too late: it must not bring the process down
    res.on('error', ignoreError);
    if (res.headersSent) {
      res.destroy();
      return;
    }
    const text = '{"code":"REQUEST_TIMEOUT","message":"The request body did not arrive in time."}';
    res.writeHead(408, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': text.length,
      ...(req.httpVersionMajor === 1 && { connection: 'close' }),
    });
    res.end(text, () => req.destroy());
  }
}

/** Makes the rules for one guard's slots. */
export function createEndings(
  owner: object,
  guard: EndingGuard,
  options: ResolvedEndingOptions,
  seams: EndingSeams,
): Endings {
  return new Endings(owner, guard, options, seams);
}

/**
 * Gives the permit's slot back when the call is over, exactly once: when its handler has ended writing,
 * or by the rules for clients that leave, stall or stream (see `EndingOptions`).
 *
 * @param startedUs - when the call arrived, on the rules' clock
 */
export function releaseWhenDone(
  req: IncomingMessage,
  res: ServerResponse,
  permit: Permit,
  endings: Endings,
  startedUs: number,
): void {
  const watch = watchOf(res);
  const ending = new Ending(req, res, permit, endings, startedUs, watch.ending);
  watch.ending = ending;
  if (!watch.isWatched) beginWatch(req, res, watch);
  if (res.writableEnded) ending.ended();
  else if (res.destroyed) {
    ending.closed();
    watchEnd(res, watch);
  }
}

/**
 * True if this request has been counted before by `owner`, a guard or a set of them: by the same middleware, or another
 * one on the same guard.
 */
export function holdsSlot(res: ServerResponse, owner: object): boolean {
  let ending = (res as WatchedResponse)[WATCH]?.ending;
  for (; ending !== undefined; ending = ending.outer) {
    if (ending.endings.owner === owner || ending.endings.guard === owner) return true;
  }
  return false;
}

/**
 * The calls on this response end now and teach their guards nothing: what it carries from here on is a
 * refusal of ours.
 */
export function endCalls(res: ServerResponse): void {
  const watch = (res as WatchedResponse)[WATCH];
  if (watch === undefined) return; // no call is in flight on it
  watch.refused = true;
  for (let { ending } = watch; ending !== undefined; ending = ending.outer) ending.ignore();
}

/** Says whether the answer is a refusal of ours, by somebody who will write it himself: then it teaches nothing. */
export function markRefused(res: ServerResponse, refused: boolean): void {
  watchOf(res).refused = refused;
}

/** True once this response carries a refusal of ours: its handler must not start any more. */
export function isRefused(res: ServerResponse): boolean {
  return (res as WatchedResponse)[WATCH]?.refused === true;
}

/** The response that answers `req`, if a limit has admitted it. */
export function responseOf(req: IncomingMessage): ServerResponse | undefined {
  return (req as WatchedRequest)[RESPONSE];
}

function watchOf(res: WatchedResponse): Watch {
  let watch = res[WATCH];
  if (watch === undefined) {
    watch = new Watch();
    res[WATCH] = watch;
  }
  return watch;
}

// One set of functions for all responses: they find their call through `this`, so that a request costs no closure.

/** For `giveEarly`: what `beginWatch` would otherwise add. */
function giveEndingKeys(req: WatchedRequest, res: WatchedResponse): void {
  req[RESPONSE] = res;
  res[WATCH] ??= undefined; // protect has admitted it before
  if (!Object.hasOwn(res, 'destroy')) res.destroy = watchedDestroy;
}

function beginWatch(req: IncomingMessage, res: ServerResponse, watch: Watch): void {
  watch.isWatched = true;
  (req as WatchedRequest)[RESPONSE] = res;
  res.on('prefinish', onEnded);
  res.on('close', onClosed);
  // the outcome of a handler that destroys differs from that of a client that leaves, and both give only 'close'
  if (res.destroy !== watchedDestroy) {
    if (Object.hasOwn(res, 'destroy')) {
      watch.ownDestroy = (res as unknown as Methods).destroy;
      res.destroy = watchedOwnDestroy;
    } else res.destroy = watchedDestroy;
  }
  // a pipelined answer has no socket yet, and its 'prefinish' waits for the answer before it; HTTP/2 has none
  if (res.socket === null || req.httpVersionMajor !== 1) watchEnd(res, watch);
}

function watchEnd(res: ServerResponse, watch: Watch): void {
  if (watch.ownEnd !== undefined) return;
  watch.ownEnd = (res as unknown as Methods).end;
  res.end = watchedEnd;
}

function onEnded(this: WatchedResponse): void {
  let ending = this[WATCH]?.ending;
  for (; ending !== undefined; ending = ending.outer) ending.ended();
}

function onClosed(this: WatchedResponse): void {
  const watch = watchOf(this);
  for (let { ending } = watch; ending !== undefined; ending = ending.outer) ending.closed();
  // Node promises no 'prefinish' after this
  if (!this.writableEnded) watchEnd(this, watch);
}

const watchedEnd = function end(this: WatchedResponse, ...args) {
  const result = (watchOf(this).ownEnd as Method).apply(this, args);
  onEnded.call(this);
  return result;
} as Method as ServerResponse['end'];

/** In front of the prototype's, whichever prototype the framework gives it meanwhile. */
const watchedDestroy = function destroy(this: WatchedResponse, ...args) {
  onDestroy(this);
  return (Object.getPrototypeOf(this) as Methods).destroy.apply(this, args);
} as Method as ServerResponse['destroy'];

/** In front of one that another library has put in place. */
const watchedOwnDestroy = function destroy(this: WatchedResponse, ...args) {
  onDestroy(this);
  return (watchOf(this).ownDestroy as Method).apply(this, args);
} as Method as ServerResponse['destroy'];

function onDestroy(res: WatchedResponse): void {
  let ending = res[WATCH]?.ending;
  for (; ending !== undefined; ending = ending.outer) ending.destroyed();
}

/** True for an answer that will go on for as long as its client stays: by what it says of itself. */
function startsStream(res: ServerResponse): boolean {
  if (res.statusCode === 101) return true;
  // headers given to writeHead alone are in the head's text only
  const type = res.getHeader('content-type');
  if (type !== undefined) return /^text\/event-stream\b/i.test(String(type));
  const { _header: head } = res as { _header?: string | null };
  return typeof head === 'string' && /^content-type: *text\/event-stream\b/im.test(head);
}

function ignoreError(): void {}

giveEarly(giveEndingKeys);
