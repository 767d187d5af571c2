import { outboundFactsOf } from '@elimit/client';
import { TimeoutError } from '@elimit/core';
import {
  AxiosError,
  CanceledError,
  type InternalAxiosRequestConfig,
  isAxiosError,
  isCancel,
} from 'axios';

/**
 * Stands for an AxiosError about an answer that ended too early. That one carries the answer's good status, and its
 * request may have used an old connection; neither is an excuse here.
 */
export class BrokenAnswer extends Error {
  readonly code = 'ECONNRESET';

  constructor(override readonly cause: AxiosError) {
    super(cause.message);
  }
}

/** Its status and headers came, and its body did not. */
export function brokeOff(error: unknown): boolean {
  if (!isAxiosError(error)) return false;
  const { response, code, config } = error;
  if (response !== undefined) return response.data === undefined;
  // older axios tells neither the response nor whether `maxContentLength` was the reason
  return code === AxiosError.ERR_BAD_RESPONSE && !((config?.maxContentLength ?? -1) > -1);
}

/** What `isAxiosError` finds behind a breaker. */
export type BreakerAxiosError = AxiosError & {
  /** brpc's error number of a refusal or an isolation: 2004, 112 or 1018. */
  readonly brpcCode?: number;
  /** What a server that fails because of it should answer: 502 or 504. */
  readonly statusCode?: number;
};

/**
 * The error of a call, as axios's users know it: an AxiosError with the call's own config, `code`, `brpcCode`,
 * `cause`, and the `status` with which a server should answer for it; or a CanceledError.
 */
export function errorFor(
  error: unknown,
  config: InternalAxiosRequestConfig,
  callers: AbortSignal | undefined,
): unknown {
  if (callers?.aborted) {
    return isCancel(callers.reason) ? callers.reason : new CanceledError(undefined, config);
  }
  if (isCancel(error)) return error;
  const axiosError = axiosErrorOf(error, config);
  axiosError.config = config;
  const answered = brokeOff(axiosError) ? undefined : axiosError.response?.status;
  const { code, brpcCode, status } = outboundFactsOf(axiosError, answered);
  if (code !== undefined) axiosError.code = code;
  // a 4xx stays what axios makes of it; for the rest a 503 would invite our own clients to ask the next node
  const facts =
    answered !== undefined && answered < 500 ? {} : { status, statusCode: status, expose: false };
  return Object.assign(axiosError, facts, brpcCode === undefined ? {} : { brpcCode });
}

function axiosErrorOf(error: unknown, config: InternalAxiosRequestConfig): AxiosError {
  if (!(error instanceof BrokenAnswer)) {
    return isAxiosError(error) ? error : wrapped(error, config);
  }
  error.cause.code = error.code;
  return error.cause;
}

function wrapped(error: unknown, config: InternalAxiosRequestConfig): AxiosError {
  const isLate = TimeoutError.is(error);
  const text = error instanceof Error ? error.message : String(error);
  const message = (isLate && config.timeoutErrorMessage) || text;
  const made = new AxiosError(message, undefined, config);
  // not enumerable, like every cause
  return Object.defineProperty(made, 'cause', { value: error, writable: true, configurable: true });
}
