import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasBrand } from '@elimit/core';
import { responseOf } from './ending.js';

const GONE: unique symbol = Symbol.for('@elimit/node-http/ClientGoneError') as never;

const signals = new WeakMap<IncomingMessage, AbortSignal>();

/** The reason of a {@link signalOf} signal that has aborted. */
export class ClientGoneError extends Error {
  override readonly name = 'AbortError';
  readonly code = 'ERR_CLIENT_GONE';

  readonly [GONE] = true;

  constructor() {
    super('the client has hung up');
  }

  /** True for a `ClientGoneError` of this or another copy of the package. */
  static is(value: unknown): value is ClientGoneError {
    return hasBrand(value, GONE);
  }
}

/**
 * A signal that aborts when the client hangs up before its answer has ended; made at the first call,
 * so a request that nobody asks for costs nothing. Its `reason` is a {@link ClientGoneError}.
 *
 * For requests that have passed a `limit`, and for Express's own, which know their responses. For any other,
 * give the response too; without it, the signal aborts when the connection closes.
 */
export function signalOf(req: IncomingMessage, res?: ServerResponse): AbortSignal {
  let signal = signals.get(req);
  if (signal === undefined) {
    signal = watch(req, res ?? responseOf(req) ?? (req as { res?: ServerResponse }).res);
    signals.set(req, signal);
  }
  return signal;
}

function watch(req: IncomingMessage, res: ServerResponse | undefined): AbortSignal {
  const controller = new AbortController();
  const hangUp = (): void => {
    if (res === undefined || !res.writableEnded) controller.abort(new ClientGoneError());
  };
  if (req.socket.destroyed || res?.destroyed === true) hangUp();
  else if (res === undefined) req.socket.once('close', hangUp);
  // a pipelined request's response hears of nothing before its turn, the request does
  else if (res.socket === null) req.once('close', () => req.socket.destroyed && hangUp());
  else res.once('close', hangUp);
  return controller.signal;
}
