import { Stream } from 'node:stream';
import { type Attempt, isWaitedFor, watchedUpload } from '@elimit/client';
import type { Dispatcher } from 'undici';

type Controller = Dispatcher.DispatchController;
type Handler = Dispatcher.DispatchHandler;
type Event = (handler: Handler, controller: Controller) => void;

/** A try whose headers have come: the channel looks at these, then it is forwarded or dropped. */
export interface Started {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Hands over everything so far, and from now on. */
  forwardTo(handler: Handler, facade: Facade): void;
  /** Ends it unseen. */
  drop(): void;
}

/** Stands between the tries of a call and its one handler, which must see a single request. */
export class Relay {
  readonly #handler: Handler;
  readonly #facade = new Facade();

  constructor(handler: Handler) {
    this.#handler = handler;
    handler.onRequestStart?.(this.#facade, {});
  }

  /** Aborts when the handler wants no answer any more. */
  get signal(): AbortSignal {
    return this.#facade.control.signal;
  }

  forward(started: Started): void {
    started.forwardTo(this.#handler, this.#facade);
  }

  fail(error: Error): void {
    this.#handler.onResponseError?.(this.#facade, error);
  }

  /** Begins a try; resolves with its headers. */
  started(
    attempt: Attempt,
    body: unknown,
    begin: (handler: Handler, body: unknown) => boolean,
  ): Promise<Started> {
    return new Promise((resolve, reject) => {
      const watch = new TryHandler(attempt, resolve, reject);
      try {
        begin(watch, watch.upload(body));
      } catch (error) {
        watch.forget();
        throw error;
      }
    });
  }
}

/** What the call's handler holds: it acts on whichever try has won. */
class Facade implements Controller {
  readonly control = new AbortController();
  winner: Controller | undefined;
  paused = false;

  get aborted(): boolean {
    return this.control.signal.aborted;
  }

  get reason(): Error | null {
    return this.aborted ? (this.control.signal.reason as Error) : null;
  }

  get rawHeaders() {
    return this.winner?.rawHeaders ?? null;
  }

  get rawTrailers() {
    return this.winner?.rawTrailers ?? null;
  }

  abort(reason: Error): void {
    this.control.abort(reason);
    this.winner?.abort(reason);
  }

  pause(): void {
    this.paused = true;
    this.winner?.pause();
  }

  resume(): void {
    this.paused = false;
    this.winner?.resume();
  }
}

/** Hears one try. Keeps what comes after the headers until it is known who wants it. */
class TryHandler implements Handler, Started {
  status = 0;
  /** Takes the listener off the body. */
  forget: () => void = () => {};
  headers: Readonly<Record<string, unknown>> = {};
  readonly #attempt: Attempt;
  readonly #resolve: (started: Started) => void;
  readonly #reject: (error: unknown) => void;
  readonly #kept: Event[] = [];
  #upload: Stream | undefined;
  #hasUploadFailed = false;
  #isDropped = false;
  #to: { handler: Handler; facade: Facade } | undefined;
  #controller: Controller | undefined;

  constructor(
    attempt: Attempt,
    resolve: (started: Started) => void,
    reject: (error: unknown) => void,
  ) {
    this.#attempt = attempt;
    this.#resolve = resolve;
    this.#reject = reject;
    attempt.signal.addEventListener('abort', () => this.#abort());
  }

  /** The body to send, which is told of where it breaks off by itself. */
  upload(body: unknown): unknown {
    if (!(body instanceof Stream)) return watchedUpload(this.#attempt, body);
    this.#upload = body;
    // looked at when the request fails: a broken connection destroys the stream, too, but afterwards
    const failed = (): void => {
      this.#hasUploadFailed = true;
    };
    body.once('error', failed);
    this.forget = () => void body.off('error', failed);
    return body;
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#attempt.signal.aborted) this.#abort();
  }

  onResponseStart(
    controller: Controller,
    status: number,
    headers: Parameters<NonNullable<Handler['onResponseStart']>>[2],
    text?: string,
  ): void {
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    controller.pause();
    this.#event((handler, facade) => handler.onResponseStart?.(facade, status, headers, text));
    this.#resolve(this);
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.#event((handler, facade) => handler.onResponseData?.(facade, chunk));
  }

  onResponseEnd(
    _controller: Controller,
    trailers: Parameters<NonNullable<Handler['onResponseEnd']>>[1],
  ): void {
    this.forget();
    this.#event((handler, facade) => handler.onResponseEnd?.(facade, trailers));
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#hasUploadFailed) this.#attempt.callersFault();
    this.forget();
    if (this.status === 0) {
      this.#reject(error);
      return;
    }
    const isLetGo = this.#isDropped || this.#to?.facade.aborted;
    if (!isLetGo) this.#attempt.brokeOff(error);
    this.#event((handler, facade) => handler.onResponseError?.(facade, error));
  }

  forwardTo(handler: Handler, facade: Facade): void {
    this.#to = { handler, facade };
    facade.winner = this.#controller;
    for (const event of this.#kept.splice(0)) event(handler, facade);
    if (facade.aborted) this.#controller?.abort(facade.reason as Error);
    else if (!facade.paused) this.#controller?.resume();
  }

  drop(): void {
    this.#isDropped = true;
    this.#kept.length = 0;
    this.#controller?.abort(new DOMException('another try has answered', 'AbortError'));
  }

  #event(event: Event): void {
    if (this.#to === undefined) this.#kept.push(event);
    else event(this.#to.handler, this.#to.facade);
  }

  #abort(): void {
    if (isWaitedFor(this.#upload)) this.#attempt.callersFault();
    this.#controller?.abort(this.#attempt.signal.reason as Error);
  }
}
