import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { Clock } from '@elimit/core';

const BODY: unique symbol = Symbol('elimit.body');

interface WatchedRequest extends IncomingMessage {
  [BODY]?: BodyWatch;
}

/**
 * Times how long a handler waited on an *empty* request stream: that time is the client's, not ours.
 * Exists only for requests whose body was still to come when they were admitted.
 */
export class BodyWatch {
  // set once
  readonly #req: IncomingMessage;
  readonly #clock: Clock;
  readonly #blindUs: () => number;
  // moves with every chunk
  #waitingSinceUs = -1;
  #stalledUs = 0;
  #complete = false;
  #whenComplete: (() => void)[] = [];

  /** @param blindUs - how long the loop had not looked at its sockets before this turn: a chunk may have waited for us that long */
  constructor(req: IncomingMessage, clock: Clock, blindUs: () => number) {
    this.#req = req;
    this.#clock = clock;
    this.#blindUs = blindUs;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** The client's own time so far, the present wait included, in microseconds. */
  stalledUs(nowUs: number): number {
    const waited = this.#waitingSinceUs < 0 ? 0 : nowUs - this.#waitingSinceUs;
    return this.#stalledUs + waited;
  }

  /** Calls back once the last byte is here; never, if the upload is cut. */
  onComplete(callback: () => void): void {
    this.#whenComplete.push(callback);
  }

  /** A wait begins, if the reader wants more than there is. Our own slow or paused reading is no wait. */
  look(nowUs = -1): void {
    if (this.#waitingSinceUs >= 0 || this.#complete || !waitsForClient(this.#req)) return;
    this.#waitingSinceUs = nowUs < 0 ? this.#clock.nowUs() : nowUs;
  }

  /** A piece has come, or the end: the wait is over. */
  arrived(): void {
    if (this.#waitingSinceUs < 0) return;
    const waited = this.#clock.nowUs() - this.#waitingSinceUs;
    this.#stalledUs += Math.max(0, waited - this.#blindUs());
    this.#waitingSinceUs = -1;
  }

  completed(): void {
    if (this.#complete) return;
    this.#complete = true;
    for (const callback of this.#whenComplete) callback();
    this.#whenComplete = [];
  }
}

/** The watch of this request's body, set up at the first call; `undefined` for a request without a body. */
export function bodyWatchOf(
  req: IncomingMessage,
  clock: Clock,
  blindUs: () => number,
): BodyWatch | undefined {
  const watched = req as WatchedRequest;
  const known = watched[BODY];
  if (known !== undefined) return known;
  if (req.complete || !announcesBody(req)) return undefined;
  const body = new BodyWatch(req, clock, blindUs);
  watched[BODY] = body;
  // both are the documented methods between a Readable and its source; functions shared by all requests
  watched._read = watchedRead;
  watched.push = watchedPush;
  return body;
}

/** True for an HTTP/2 body that is all there, read or not. */
export function hasArrived(req: IncomingMessage): boolean {
  if (req.httpVersionMajor !== 2) return false;
  return (req as unknown as Http2ServerRequest).stream.state.remoteClose === 1;
}

function announcesBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  if (length !== undefined) return length !== '0';
  // HTTP/2 says by a flag on the headers that nothing follows them
  if (req.httpVersionMajor === 2)
    return !(req as unknown as Http2ServerRequest).stream.endAfterHeaders;
  return req.headers['transfer-encoding'] !== undefined;
}

function waitsForClient(req: IncomingMessage): boolean {
  if (req.readableLength > 0 || req.destroyed) return false;
  return req.readableFlowing === true || req.listenerCount('readable') > 0;
}

type ReadableMethods = Pick<IncomingMessage, '_read' | 'push'>;

/** The stream asks for more: for the first time, when somebody begins to read. */
function watchedRead(this: WatchedRequest, size: number): void {
  this[BODY]?.look();
  (Object.getPrototypeOf(this) as ReadableMethods)._read.call(this, size);
}

/** The parser hands over a piece. A flowing reader runs inside `push`, so its work is not counted as a wait. */
function watchedPush(this: WatchedRequest, chunk: unknown, encoding?: BufferEncoding): boolean {
  const body = this[BODY];
  body?.arrived();
  const more = (Object.getPrototypeOf(this) as ReadableMethods).push.call(this, chunk, encoding);
  if (chunk === null) body?.completed();
  else body?.look();
  return more;
}
