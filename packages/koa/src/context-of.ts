import type { IncomingMessage, ServerResponse } from 'node:http';
import { signalOf as signalOfRequest, timeLeftOf as timeLeftOfRequest } from '@elimit/node-http';
import type { Context } from 'koa';

const CONTEXT: unique symbol = Symbol('elimit.koaContext');

interface Noted extends IncomingMessage {
  [CONTEXT]?: Context;
}

/** Notes whose context it is: what works on sockets knows only Node's request. */
export function noteContext(ctx: Context): void {
  (ctx.req as Noted)[CONTEXT] = ctx;
}

/** The context of a request that {@link noteContext} has seen. */
export function contextOf(req: IncomingMessage): Context {
  return (req as Noted)[CONTEXT] as Context;
}

/**
 * A signal that aborts when the client hangs up before its answer has ended; made at the first call. Its `reason`
 * is a `ClientGoneError`.
 */
export function signalOf(ctx: { req: IncomingMessage; res: ServerResponse }): AbortSignal {
  return signalOfRequest(ctx.req, ctx.res);
}

/**
 * What is left of the time that a request's caller gave it, in milliseconds, 0 or less if it has passed; `undefined` if
 * it gave none. To be passed on to calls that are made for it: as `carriedTimeoutMs` of a client.
 */
export function timeLeftOf(ctx: { req: IncomingMessage }): number | undefined {
  return timeLeftOfRequest(ctx.req);
}
