import { BRPC_CODES } from '@elimit/core';

/** Why no connection came about. Bytes of the request cannot have left then. */
export type ConnectFailure = 'refused' | 'unreachable' | 'timeout';

/** How one try ended: with a value, or with whatever was thrown. */
export type Ended<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/** What one try means: for its endpoint, and for whether another try makes sense. */
export interface Verdict {
  /** For the endpoint's figures and its breaker. `ignored`: says nothing about it (a cancel, a refusal, a 429). */
  readonly outcome: 'success' | 'failure' | 'ignored';
  /** No connection: `refused` and `unreachable` take the endpoint out at once, the third `timeout` in a row does. */
  readonly connect?: ConnectFailure | undefined;
  /** The answer is a refusal marked ELIMIT: cheap, never held against the endpoint, and safe to send again. */
  readonly refusal?: boolean | undefined;
  /** The answer's status, if it had one; compared with the channel's `retryStatuses`. */
  readonly status?: number | undefined;
  /** Another try may end better. By default so for network errors and for `retryStatuses`. */
  readonly retriable?: boolean | undefined;
  /** The server cannot have acted on the request, so even a POST may go again. Implied by `connect` and `refusal`. */
  readonly safeToResend?: boolean | undefined;
  /** When the endpoint asked to be asked again, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Gives a verdict on how a try ended. */
export type Classify = (ended: Ended<unknown>) => Verdict;

const REFUSED = new Set(['ECONNREFUSED']);
const UNREACHABLE = new Set(['ENETUNREACH', 'EHOSTUNREACH']);
const CONNECT_TIMEOUTS = new Set(['ERR_CONNECT_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);
const NAME_FAILURES = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA']);
const CANCELS = new Set(['ABORT_ERR', 'ERR_CANCELED', 'UND_ERR_ABORTED']);
/** Errors made by elimit itself in a call further in: they tell nothing about this endpoint. */
const OURS = new Set([
  'ERR_REJECTED',
  'ERR_BREAKER_OPEN',
  'ERR_NO_ENDPOINT',
  'ERR_RECOVERING',
  'ERR_CHANNEL_CLOSED',
]);
/** Made before anything is sent, or by a bound that the caller has set: they tell nothing about this endpoint, either. */
const CALLERS = new Set([
  'ERR_INVALID_ARG_TYPE',
  'ERR_INVALID_ARG_VALUE',
  'ERR_INVALID_CHAR',
  'ERR_INVALID_HTTP_TOKEN',
  'ERR_HTTP_INVALID_HEADER_VALUE',
  'ERR_HTTP_CONTENT_LENGTH_MISMATCH',
  'ERR_UNESCAPED_CHARACTERS',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
  'ERR_BAD_OPTION',
  'ERR_BAD_OPTION_VALUE',
  'ERR_BAD_REQUEST',
  'ERR_BAD_RESPONSE', // axios without an answer to it: more than `maxContentLength`
  'ERR_FORM_DATA_DEPTH_EXCEEDED',
  'ERR_FR_MAX_BODY_LENGTH_EXCEEDED',
  'ERR_NOT_SUPPORT',
]);
const BROKEN_CONNECTIONS = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ETIMEDOUT',
  'ERR_TIMEOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
/** The least that a refusal of ours asks for. */
const SHORTEST_WAIT_MS = 100;
/** Wrapped errors are followed this far: `fetch failed` has its reason in `cause`, and so have AxiosErrors. */
const DEEPEST_CAUSE = 5;

interface ErrorLike {
  readonly code?: unknown;
  readonly name?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
  readonly response?: unknown;
  readonly request?: unknown;
}

/** Statuses and header names as most clients spell them: `status` (fetch, axios) or `statusCode` (node:http). */
interface ResponseLike {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
}

/** The verdict used unless a channel or a call brings its own: errors by their codes, answers by their status. */
export const classifyByDefault: Classify = (ended) =>
  ended.ok ? verdictOfValue(ended.value) : verdictOfError(ended.error);

function verdictOfValue(value: unknown): Verdict {
  const answer = statusOf(value);
  return answer === undefined
    ? { outcome: 'success' }
    : verdictOfStatus(answer.status, answer.headers);
}

function statusOf(value: unknown): { status: number; headers: unknown } | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { status, statusCode, headers } = value as ResponseLike;
  const number = typeof status === 'number' ? status : statusCode;
  return typeof number === 'number' && number >= 100 && number <= 599
    ? { status: number, headers }
    : undefined;
}

/**
 * The verdict on an answer by its status. A 5xx is a failure. 4xx are the caller's fault and count as
 * success, but a 429 comes too fast to be read as latency. Any other status with `x-bd-error-code: 2004` is a refusal.
 */
export function verdictOfStatus(status: number, headers?: unknown): Verdict {
  if (status === 429) return { outcome: 'ignored', status, retriable: false };
  if (isMarked(headers)) {
    return {
      outcome: 'ignored',
      refusal: true,
      status,
      retryAfterMs: unrounded(retryAfterIn(headers)),
    };
  }
  if (status < 500) return { outcome: 'success', status };
  return {
    outcome: 'failure',
    status,
    retryAfterMs: status === 503 ? retryAfterIn(headers) : undefined,
  };
}

/**
 * Our servers mean times from 100 ms on, and round them up to whole seconds: to be left alone for 1 s may mean 100 ms.
 * Taken at their word, one refusal would send a node's whole share to the others for a second, and these over their limit.
 */
function unrounded(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined || retryAfterMs < 1000) return retryAfterMs;
  return Math.max(SHORTEST_WAIT_MS, retryAfterMs - 1000);
}

function isMarked(headers: unknown): boolean {
  return headerOf(headers, 'x-bd-error-code') === String(BRPC_CODES.ELIMIT);
}

function retryAfterIn(headers: unknown): number | undefined {
  return retryAfterMsOf(headerOf(headers, 'retry-after'));
}

function headerOf(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const { get } = headers as { get?: unknown };
  const value: unknown =
    typeof get === 'function'
      ? (get as (name: string) => unknown).call(headers, name)
      : (headers as Record<string, unknown>)[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * `Retry-After` in milliseconds: whole seconds or an HTTP date; a date that has passed gives 0.
 * Anything else gives `undefined`. Not capped here: the channel does that.
 */
export function retryAfterMsOf(
  value: string | null | undefined,
  nowMs = Date.now(),
): number | undefined {
  if (value === null || value === undefined) return undefined;
  const text = value.trim();
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  // a date has letters and colons; Date.parse alone would take "1e12" and "-1" for years
  if (!/^[A-Za-z]{3,9},? .*\d\d:\d\d:\d\d/.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

/** The verdict on whatever was thrown, by the codes of the error and of its causes. */
export function verdictOfError(error: unknown): Verdict {
  const chain = chainOf(error);
  for (const link of chain) {
    const connect = connectFailureOf(link);
    if (connect !== undefined) return { outcome: 'failure', connect, retriable: true };
  }
  for (const link of chain) {
    const answer = statusOf(link.response);
    if (answer !== undefined) return verdictOfStatus(answer.status, answer.headers);
    const verdict = verdictOfCode(link);
    if (verdict !== undefined) return verdict;
  }
  // without a cause no client has made it: it is a slip in the request, or in the program
  const isSlip = chain.length === 1 && chain[0]?.name === 'TypeError';
  return { outcome: isSlip ? 'ignored' : 'failure', retriable: false };
}

function verdictOfCode(link: ErrorLike): Verdict | undefined {
  const code = String(link.code);
  if (CANCELS.has(code) || link.name === 'AbortError') {
    return { outcome: 'ignored', retriable: false };
  }
  // a Blob whose file has changed cannot be read
  const isCallers = CALLERS.has(code) || link.name === 'NotReadableError';
  if (OURS.has(code) || isCallers) return { outcome: 'ignored', retriable: false };
  if (NAME_FAILURES.has(code)) return { outcome: 'failure', retriable: true, safeToResend: true };
  if (link.name === 'TimeoutError') return { outcome: 'failure', retriable: true };
  if (!BROKEN_CONNECTIONS.has(code)) return undefined;
  // the server closed an idle connection just as we took it: an orderly end, no fault of the endpoint
  return { outcome: usedAgain(link.request) ? 'ignored' : 'failure', retriable: true };
}

function connectFailureOf(link: ErrorLike): ConnectFailure | undefined {
  if (Array.isArray(link.errors)) return connectFailureOfAll(link.errors);
  const code = String(link.code);
  if (REFUSED.has(code)) return 'refused';
  if (UNREACHABLE.has(code)) return 'unreachable';
  if (CONNECT_TIMEOUTS.has(code)) return 'timeout';
  if (link.syscall !== 'connect') return undefined;
  if (code === 'EINVAL') return 'unreachable';
  return code === 'ETIMEDOUT' ? 'timeout' : undefined;
}

/** A host with several addresses fails once for each: it is down for sure only if none was merely slow. */
function connectFailureOfAll(errors: readonly unknown[]): ConnectFailure | undefined {
  const failures = errors.map((error) => connectFailureOf(Object(error) as ErrorLike));
  if (failures.includes(undefined)) return undefined;
  return failures.includes('timeout') ? 'timeout' : failures[0];
}

function chainOf(error: unknown): ErrorLike[] {
  const chain: ErrorLike[] = [];
  let link = error;
  while (typeof link === 'object' && link !== null && chain.length < DEEPEST_CAUSE) {
    chain.push(link);
    link = (link as ErrorLike).cause;
  }
  return chain;
}

/** True for a request on a kept-alive connection; `_currentRequest` is where follow-redirects, and so axios, has it. */
function usedAgain(request: unknown): boolean {
  if (typeof request !== 'object' || request === null) return false;
  const { reusedSocket, _currentRequest: inner } = request as {
    readonly reusedSocket?: unknown;
    readonly _currentRequest?: unknown;
  };
  return reusedSocket === true || (inner !== request && usedAgain(inner));
}
