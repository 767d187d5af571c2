import { BRPC_CODES, BreakerOpenError, RejectedError } from '../errors.js';
import type { Outcome } from '../outcome.js';

/** What of an error or an answer may say how it ended. Whoever made it, each may be anything. */
interface Clues {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly brpcCode?: unknown;
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
  readonly response?: unknown;
}

const CANCEL_NAMES: readonly unknown[] = ['AbortError', 'CanceledError'];
const CANCEL_CODES: readonly unknown[] = ['ABORT_ERR', 'ERR_CANCELED'];
const ERROR_CODE_HEADER = 'x-bd-error-code';

/** True for another guard's or breaker's refusal: it says nothing about the thing called. */
export function isOwnRefusal(error: unknown): boolean {
  return RejectedError.is(error) || BreakerOpenError.is(error);
}

/**
 * How a rejected call ended for the thing called: a status of 5xx, a timeout, a lost connection or any
 * unknown error is a `failure`; 4xx was an answer, so a `success`; a cancel is `abandoned`; a refusal
 * (ours, or an answer marked ELIMIT) is `ignored`.
 */
export function outcomeOfError(error: unknown): Outcome {
  try {
    if (isOwnRefusal(error)) return 'ignored';
    if (typeof error !== 'object' || error === null) return 'failure';
    const clues: Clues = error;
    if (CANCEL_NAMES.includes(clues.name) || CANCEL_CODES.includes(clues.code)) return 'abandoned';
    if (isElimit(clues)) return 'ignored';
    const status = statusOf(clues);
    return status >= 400 && status < 500 ? 'success' : 'failure';
  } catch {
    return 'failure'; // an error that cannot even be looked at
  }
}

/** How a call ended that gave a value: `fetch` and its like resolve a 5xx. */
export function outcomeOfValue(value: unknown): Outcome {
  if (typeof value !== 'object' || value === null) return 'success';
  try {
    const clues: Clues = value;
    const status = statusOf(clues);
    if (!(status >= 500 && status < 600)) return 'success';
    return isElimit(clues) ? 'ignored' : 'failure';
  } catch {
    return 'success';
  }
}

function isElimit(clues: Clues): boolean {
  if (clues.code === 'ELIMIT' || clues.brpcCode === BRPC_CODES.ELIMIT) return true;
  const response = clues.response as Clues | null | undefined;
  return Number(header(clues.headers ?? response?.headers)) === BRPC_CODES.ELIMIT;
}

function header(headers: unknown): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const { get } = headers as { get?: unknown };
  if (typeof get === 'function') return get.call(headers, ERROR_CODE_HEADER);
  return (headers as Record<string, unknown>)[ERROR_CODE_HEADER];
}

function statusOf(clues: Clues): number {
  if (typeof clues.status === 'number') return clues.status;
  if (typeof clues.statusCode === 'number') return clues.statusCode;
  const response = clues.response as Clues | null | undefined;
  return typeof response?.status === 'number' ? response.status : Number.NaN;
}
