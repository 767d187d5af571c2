import {
  BRPC_CODES,
  hasBrand,
  REJECTION_STATUS,
  type Rejection,
  rejectionBody,
  retryAfterSeconds,
  withoutStack,
} from '@elimit/core';
import { HttpException } from '@nestjs/common';

const BRAND: unique symbol = Symbol.for('@elimit/nest/ElimitException') as never;

/** How a refusal is worded. */
export interface ElimitExceptionOptions {
  /** 400 to 599. @default 503; 429 for a rate */
  readonly statusCode?: number | undefined;
  /** The sentence in the body, or the whole body. @default the sentence for the reason */
  readonly message?: string | object | undefined;
}

/**
 * A refusal, as exception filters see it: the ELIMIT body is its response. The headers have been set on the
 * response when it is thrown, and stand in `headers` for filters that write their own.
 */
export class ElimitException extends HttpException {
  readonly code = 'ERR_REJECTED';
  readonly headers: Readonly<Record<string, string>>;
  readonly [BRAND] = true;

  constructor(
    readonly rejection: Rejection,
    options: ElimitExceptionOptions = {},
  ) {
    const { statusCode = REJECTION_STATUS[rejection.reason], message } = options;
    super(typeof message === 'object' ? message : rejectionBody(rejection, message), statusCode);
    this.headers = {
      'retry-after': String(retryAfterSeconds(rejection.retryAfterMs)),
      'cache-control': 'no-store',
      'x-bd-error-code': String(BRPC_CODES.ELIMIT),
    };
  }

  /** True for an `ElimitException` of this or another copy of the package. */
  static is(value: unknown): value is ElimitException {
    return hasBrand(value, BRAND);
  }
}

/** The exception form of a rejection. */
export function exceptionOf(
  rejection: Rejection,
  options?: ElimitExceptionOptions,
): ElimitException {
  return withoutStack(() => new ElimitException(rejection, options));
}
