import type { IncomingMessage, ServerResponse } from 'node:http';
import { giveEarly, signalOf } from '@elimit/node-http';
import type { ExecutionContext } from '@nestjs/common';

const CONTEXT: unique symbol = Symbol('elimit.nestContext');

interface Noted extends IncomingMessage {
  [CONTEXT]?: ExecutionContext | undefined;
}

/** Node's own request of an HTTP context: Fastify wraps it, Express extends it. */
export function requestOf(context: ExecutionContext): IncomingMessage {
  const request = context.switchToHttp().getRequest<IncomingMessage & { raw?: IncomingMessage }>();
  return request.raw ?? request;
}

/** Node's own response of an HTTP context. */
export function responseOf(context: ExecutionContext): ServerResponse {
  const response = context.switchToHttp().getResponse<ServerResponse & { raw?: ServerResponse }>();
  return response.raw ?? response;
}

/** Notes whose context it is: what works on sockets knows only Node's request. */
export function noteContext(req: IncomingMessage, context: ExecutionContext): void {
  (req as Noted)[CONTEXT] = context;
}

giveEarly((req: Noted) => {
  req[CONTEXT] = undefined;
});

/** The context of a request that {@link noteContext} has seen. */
export function contextOf(req: IncomingMessage): ExecutionContext {
  return (req as Noted)[CONTEXT] as ExecutionContext;
}

export function setHeaders(res: ServerResponse, headers: Readonly<Record<string, string>>): void {
  if (res.headersSent) return;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
}

/** Aborts when the client of an HTTP context hangs up; in other contexts, and without a socket, never. */
export function hangUpOf(context: ExecutionContext): AbortSignal {
  if (context.getType() === 'http') return signalOf(requestOf(context), responseOf(context));
  // a GraphQL resolver's third argument holds the request that brought it, by common habit
  const carrier = context.getArgs<unknown[]>()[2] as { req?: IncomingMessage } | undefined;
  const req = (carrier?.req as { raw?: IncomingMessage } | undefined)?.raw ?? carrier?.req;
  return req?.socket === undefined ? new AbortController().signal : signalOf(req);
}
