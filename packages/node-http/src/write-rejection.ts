import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  BRPC_CODES,
  REJECTION_MESSAGE,
  REJECTION_STATUS,
  type Rejection,
  type RejectionReason,
  rejectionBody,
  retryAfterSeconds,
  systemTimers,
} from '@elimit/core';

/** How refusals are written out. */
export interface WriteRejectionOptions {
  /** Instead of 503 for load and 429 for rates: 400 to 599. */
  readonly statusCode?: number | undefined;
  /** Instead of the sentence for the reason. */
  readonly message?: string | undefined;
}

/** A body of up to this many bytes is read and dropped, so that the connection lives on. */
const DROPPED_BYTES = 65_536;
/** How long a client may go on sending a larger one before its connection is cut. */
const LINGER_MS = 1_000;

const ERRNO = String(BRPC_CODES.ELIMIT);

/** Bodies up to the number they end in: only that differs between two refusals for one reason. */
const bodyStarts = new Map<RejectionReason, string>();

function bodyOf(rejection: Rejection, message: string | undefined): string {
  if (message !== undefined) return JSON.stringify(rejectionBody(rejection, message));
  let start = bodyStarts.get(rejection.reason);
  if (start === undefined) {
    const body = JSON.stringify(
      rejectionBody({ ...rejection, retryAfterMs: 0 }, REJECTION_MESSAGE[rejection.reason]),
    );
    start = body.slice(0, -'0}'.length); // retryAfterMs is the last key
    bodyStarts.set(rejection.reason, start);
  }
  return `${start}${rejection.retryAfterMs}}`;
}

/**
 * Answers a refused request: status, `Retry-After`, `x-bd-error-code: 2004` and the ELIMIT body as JSON.
 *
 * May be called before the request's body was read. A small body is then dropped and the connection goes
 * on; for a large one, or one of unknown length, the answer says `Connection: close` and the client gets a
 * second to read it. An answer that has begun already is left to whoever began it.
 */
export function writeRejection(
  res: ServerResponse,
  rejection: Rejection,
  options: WriteRejectionOptions = {},
): void {
  if (res.headersSent || res.writableEnded) return;
  const body = bodyOf(rejection, options.message);
  const lingers = hasLargeBody(res.req);
  const headers: Record<string, string | number> = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'retry-after': retryAfterSeconds(rejection.retryAfterMs),
    'cache-control': 'no-store',
    'x-bd-error-code': ERRNO,
  };
  if (lingers && res.req.httpVersionMajor === 1) headers.connection = 'close';
  res.writeHead(options.statusCode ?? REJECTION_STATUS[rejection.reason], headers);
  if (lingers) endLate(res.req, res, body);
  else res.end(body);
}

function hasLargeBody(req: IncomingMessage): boolean {
  if (req.complete) return false;
  const { headers } = req;
  // the client may or may not send what it asked leave for: the connection cannot be read any further
  if (headers.expect !== undefined) return true;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  return length !== undefined && !(Number(length) <= DROPPED_BYTES);
}

/**
 * Sends the whole answer but ends it later. Ending a `Connection: close` answer shuts the socket, and shutting
 * a socket that holds unread bytes resets it: the client would lose the answer it was about to read.
 */
function endLate(req: IncomingMessage, res: ServerResponse, body: string): void {
  res.write(body);
  const timer = systemTimers.setTimeout(end, LINGER_MS);
  function end(): void {
    systemTimers.clearTimeout(timer);
    req.off('end', end);
    req.off('close', end);
    res.end();
  }
  req.once('end', end);
  req.once('close', end);
  req.resume();
}
