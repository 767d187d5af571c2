import {
  BRPC_CODES,
  hasBrand,
  integerIn,
  REJECTION_STATUS,
  type Rejection,
  rejectionBody,
  retryAfterSeconds,
  withoutStack,
} from '@elimit/core';
import { type ExecutionContext, HttpException } from '@nestjs/common';

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
  /** Stable, for programs; a `RejectedError` has the same. */
  readonly code = 'ERR_REJECTED';
  /** `retry-after` in seconds, `cache-control`, and the ELIMIT mark `x-bd-error-code`. */
  readonly headers: Readonly<Record<string, string>>;
  /** What `is` looks for. */
  readonly [BRAND] = true;

  /**
   * @param rejection - who refused, why, and when to ask again
   * @throws TypeError or RangeError for a `statusCode` outside 400 to 599
   */
  constructor(
    /** Who refused, why, and when to ask again. */
    readonly rejection: Rejection,
    options: ElimitExceptionOptions = {},
  ) {
    const { statusCode = REJECTION_STATUS[rejection.reason], message } = options;
    integerIn('statusCode', statusCode, 400, 599);
    super(typeof message === 'object' ? message : rejectionBody(rejection, message), statusCode);
    this.headers = headersOf(rejection);
  }

  /** True for an `ElimitException` of this or another copy of the package. */
  static is(value: unknown): value is ElimitException {
    return hasBrand(value, BRAND);
  }
}

/** The headers of a refusal. */
export function headersOf(rejection: Rejection): Readonly<Record<string, string>> {
  return {
    'retry-after': String(retryAfterSeconds(rejection.retryAfterMs)),
    'cache-control': 'no-store',
    'x-bd-error-code': String(BRPC_CODES.ELIMIT),
  };
}

/** The exception form of a rejection. */
function exceptionOf(rejection: Rejection, options?: ElimitExceptionOptions): ElimitException {
  return withoutStack(() => new ElimitException(rejection, options));
}

/** What a refusal is told by. */
export interface Answering extends ElimitExceptionOptions {
  readonly exception?: ((rejection: Rejection, context: ExecutionContext) => unknown) | undefined;
}

/** What is thrown for a refusal, in every context: what `exception` makes, or if that is nothing, our own. */
export function thrownFor(
  rejection: Rejection,
  context: ExecutionContext,
  answering: Answering,
): unknown {
  return answering.exception?.(rejection, context) ?? exceptionOf(rejection, answering);
}
