import type { Attempt } from '@elimit/client';
import { Dispatcher } from 'undici';
import { dispatcherOf } from './connections.js';
import { withHeaders } from './headers.js';
import { type Abort, watchedHandler } from './watched-handler.js';

/** Carries the requests of one try: its first, and those to which redirects lead. */
export class TryDispatcher extends Dispatcher {
  /** False while nothing was to be sent yet. */
  isUsed = false;
  /** Of the request that was sent last; 0 while it has no answer. */
  status = 0;
  readonly #first: Attempt;
  #at: Attempt;
  #abort: Abort | undefined;

  constructor(attempt: Attempt) {
    super();
    this.#first = this.#at = attempt;
    attempt.signal.addEventListener('abort', () => this.#abort?.(this.#reason()));
  }

  /** @throws NoEndpointError for a redirect to an origin that is isolated */
  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    this.isUsed = true;
    this.status = 0;
    const { origin } = new URL(String(options.origin));
    if (origin !== this.#at.endpoint.url.origin) this.#at = this.#first.redirected(origin);
    const headers = withHeaders(options.headers, this.#at.headers);
    return dispatcherOf(this.#at).dispatch(
      { ...options, headers },
      watchedHandler(handler, {
        connected: (abort) => this.#connected(abort),
        answered: (status) => {
          this.status = status;
        },
        brokeOff: (error) => this.#first.brokeOff(error),
      }),
    );
  }

  #connected(abort: Abort): void {
    this.#abort = abort;
    if (this.#first.signal.aborted) abort(this.#reason());
  }

  #reason(): Error {
    return this.#first.signal.reason as Error;
  }
}
