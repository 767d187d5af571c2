import type { IncomingMessage, ServerResponse } from 'node:http';
import { giveEarly } from './request-keys.js';

/**
 * What Express and its router, 4 and 5, write on a request and a response. They ask for values, never for presence.
 * Not `query`, which Express 4 writes too: it is an accessor in 5, which a property would hide.
 */
interface ExpressRequest {
  res?: unknown;
  next?: unknown;
  baseUrl?: unknown;
  originalUrl?: unknown;
  _parsedUrl?: unknown;
  params?: unknown;
  route?: unknown;
  /** Node's own, the prototype's until the first listener. */
  _eventsCount?: number;
  [routerKey: symbol]: unknown;
}

interface ExpressResponse {
  locals?: unknown;
  statusCode?: unknown;
  statusMessage?: unknown;
}

/** Where Express 5's router notes the pattern that matched: a symbol of its own, to be found on a request only. */
const ROUTER_KEY = 'router.tracing.matchedRoute';
let routerKey: symbol | undefined;
/** A request that has been through the router meanwhile; and how many more of them are looked at. */
let sample: IncomingMessage | undefined;
let looksLeft = 100;

function lookForRouterKey(next: IncomingMessage): void {
  if (sample !== undefined) {
    routerKey = Object.getOwnPropertySymbols(sample).find((key) => key.description === ROUTER_KEY);
  }
  looksLeft = routerKey === undefined ? looksLeft - 1 : 0;
  sample = looksLeft > 0 ? next : undefined;
}

/** Gives both all keys that they will get, so that they keep their hidden classes (see `giveEarly`). */
function giveExpressKeys(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMajor !== 1) return; // not Express's, and their responses take no message
  const request = req as unknown as ExpressRequest;
  request.res = undefined;
  request.next = undefined;
  request.baseUrl = undefined;
  request.originalUrl = undefined;
  request._parsedUrl = undefined;
  request.params = undefined;
  request.route = undefined;
  request._eventsCount = request._eventsCount ?? 0;
  if (looksLeft > 0) lookForRouterKey(req);
  if (routerKey !== undefined) request[routerKey] = undefined;
  const response = res as ExpressResponse;
  response.locals = undefined;
  response.statusCode = res.statusCode; // the prototype's until now, and so is the next
  response.statusMessage = res.statusMessage;
}

/** From now on, on every server that a limit stands on: for whoever knows that there is an Express app on one. */
export function giveExpressKeysEarly(): void {
  giveEarly(giveExpressKeys);
}

/** True for an app of Express, 4 or 5: it holds the prototypes that it gives to requests and responses. */
export function isExpressApp(listener: object): boolean {
  const { request, response, handle } = listener as Record<string, unknown>;
  return (
    typeof handle === 'function' && typeof request === 'object' && typeof response === 'object'
  );
}
