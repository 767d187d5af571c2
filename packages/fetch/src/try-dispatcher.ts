import type { Attempt } from '@elimit/client';
import { Dispatcher } from 'undici';
import { dispatcherOf } from './connections.js';
import { withHeaders } from './headers.js';

type Abort = (reason: Error) => void;

/** Carries the requests of one try: its first, and those to which redirects lead. */
export class TryDispatcher extends Dispatcher {
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
    const { origin } = new URL(String(options.origin));
    if (origin !== this.#at.endpoint.url.origin) this.#at = this.#first.redirected(origin);
    const headers = withHeaders(options.headers, this.#at.headers);
    return dispatcherOf(this.#at).dispatch({ ...options, headers }, this.#watched(handler));
  }

  /**
   * The same handler, except that the try can abort its request, and hears of answers that break off. A proxy, since
   * handlers are of two kinds and the methods of both change with undici's versions.
   */
  #watched(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
    let hasAnswer = false;
    const watch: Readonly<Record<string, (args: readonly unknown[]) => void>> = {
      onConnect: ([abort]) => this.#connected(abort as Abort),
      onRequestStart: ([controller]) => {
        this.#connected((reason) => (controller as Dispatcher.DispatchController).abort(reason));
      },
      onHeaders: ([status]) => {
        hasAnswer ||= (status as number) >= 200;
      },
      onResponseStart: ([, status]) => {
        hasAnswer ||= (status as number) >= 200;
      },
      onError: ([error]) => {
        if (hasAnswer) this.#first.brokeOff(error);
      },
      onResponseError: ([, error]) => {
        if (hasAnswer) this.#first.brokeOff(error);
      },
    };
    return new Proxy(handler, {
      get(target, key) {
        const value = Reflect.get(target, key) as unknown;
        if (typeof value !== 'function') return value;
        const watcher = typeof key === 'string' ? watch[key] : undefined;
        return (...args: unknown[]) => {
          const given = Reflect.apply(value, target, args) as unknown;
          watcher?.(args);
          return given;
        };
      },
    });
  }

  #connected(abort: Abort): void {
    this.#abort = abort;
    if (this.#first.signal.aborted) abort(this.#reason());
  }

  #reason(): Error {
    return this.#first.signal.reason as Error;
  }
}
