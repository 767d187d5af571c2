import {
  type Attempt,
  type CallOptions,
  type ChannelTarget,
  channelOf,
  checkCallOptions,
} from '@elimit/client';
import type { Dispatcher } from 'undici';
import { withHeaders } from './headers.js';
import { Relay, type Started } from './relay.js';

/** What an interceptor does with the requests of its dispatcher. */
export interface InterceptorOptions
  extends Pick<CallOptions, 'breaker' | 'maxRetries' | 'timeoutMs'> {
  /** They may all be sent again even if the server may have acted on them. @default false */
  readonly resend?: boolean | undefined;
}

/**
 * An interceptor for `Dispatcher.compose` of undici 7 or 8: its requests go through a channel. A URL whose host
 * is the channel's name goes to its nodes (`http://search/items` for a channel named `search`); others go where they
 * say, guarded by their origin. Connections, and so the time for them, are those of the dispatcher it stands before.
 * Upgrades and CONNECT pass it by.
 *
 * @param target - a channel, or options to make one. @default each origin is guarded for itself
 * @throws TypeError or RangeError for unknown options and bad values
 */
export function elimitInterceptor(
  target?: ChannelTarget,
  rules: InterceptorOptions = {},
): Dispatcher.DispatcherComposeInterceptor {
  const channel = channelOf(target);
  checkCallOptions('elimitInterceptor', rules, ['resend', 'breaker', 'maxRetries', 'timeoutMs']);
  return (dispatch) => (options, handler) => {
    const { method, upgrade, body } = options;
    if (upgrade || method === 'CONNECT') return dispatch(options, handler);
    const { origin, hostname } = new URL(String(options.origin));
    const isForNodes = channel.hasNodes && hostname === channel.name.toLowerCase();
    const relay = new Relay(handler);
    const call = channel.execute((attempt) => trySend(attempt, dispatch, options, relay), {
      ...rules,
      method,
      signal: relay.signal,
      replayable: isPlain(body),
      origin: isForNodes ? undefined : origin,
      errorCost: true,
      discard: (ended) => {
        if (ended.ok) ended.value.drop();
      },
    });
    call.then(
      (started) => relay.forward(started),
      (error: unknown) => relay.fail(error as Error),
    );
    return true;
  };
}

function trySend(
  attempt: Attempt,
  dispatch: Dispatcher.Dispatch,
  options: Dispatcher.DispatchOptions,
  relay: Relay,
): Promise<Started> {
  return relay.started(attempt, options.body, (handler, body) =>
    dispatch(
      {
        ...options,
        body: body as Exclude<Dispatcher.DispatchOptions['body'], undefined>,
        origin: attempt.endpoint.url.origin,
        headers: withHeaders(options.headers, attempt.headers),
      },
      handler,
    ),
  );
}

/** Bodies that can be sent twice. */
function isPlain(body: unknown): boolean {
  return (
    body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array
  );
}
