import type { IncomingMessage, ServerResponse } from 'node:http';
import { giveEarly } from '@elimit/node-http';

/** What Express and its router, 4 and 5, write on a request and a response. They ask for values, never for presence. */
interface ExpressRequest {
  res?: unknown;
  next?: unknown;
  baseUrl?: unknown;
  originalUrl?: unknown;
  _parsedUrl?: unknown;
  params?: unknown;
  route?: unknown;
}

interface ExpressResponse {
  locals?: unknown;
  statusCode?: unknown;
  statusMessage?: unknown;
}

/** Gives both all keys that they will get, so that they keep their hidden classes (see `giveEarly`). */
function giveExpressKeys(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMajor !== 1) return; // not Express's, and their responses take no message
  const request = req as ExpressRequest;
  request.res = undefined;
  request.next = undefined;
  request.baseUrl = undefined;
  request.originalUrl = undefined;
  request._parsedUrl = undefined;
  request.params = undefined;
  request.route = undefined;
  const response = res as ExpressResponse;
  response.locals = undefined;
  response.statusCode = res.statusCode; // the prototype's until now, and so is the next
  response.statusMessage = res.statusMessage;
}

/** From now on, on every server that a limit stands on. */
export function keepRequestShapes(): void {
  giveEarly(giveExpressKeys);
}
