import { BRPC_CODES, type Rejection, type RejectionReason } from '../errors.js';

/** How a refusal goes out over HTTP, before an adapter's own `statusCode` and `message`. */
export const REJECTION_STATUS: Readonly<Record<RejectionReason, 429 | 503>> = {
  concurrency: 503,
  deadline: 503,
  queue: 503,
  server: 503,
  rate: 429,
};

/** The sentence in the body of a refusal. */
export const REJECTION_MESSAGE: Readonly<Record<RejectionReason, string>> = {
  concurrency: 'Too many requests are being served; try again shortly.',
  deadline: 'The answer would come after your deadline.',
  queue: 'Too many requests are waiting; try again shortly.',
  server: 'The server is at its limit; try again shortly.',
  rate: 'Too many requests; try again later.',
};

/** The body of a refusal, as JSON on the wire. */
export interface RejectionBody {
  readonly code: 'ELIMIT';
  readonly errno: typeof BRPC_CODES.ELIMIT;
  readonly reason: RejectionReason;
  readonly message: string;
  readonly retryAfterMs: number;
}

/** The body as an object, keys in wire order. */
export function rejectionBody(
  rejection: Rejection,
  message: string = REJECTION_MESSAGE[rejection.reason],
): RejectionBody {
  return {
    code: 'ELIMIT',
    errno: BRPC_CODES.ELIMIT,
    reason: rejection.reason,
    message,
    retryAfterMs: rejection.retryAfterMs,
  };
}
