/** Why a call was refused. Statuses and texts for each stand in `admission/rejection.ts`. */
export type RejectionReason = 'concurrency' | 'deadline' | 'queue' | 'server' | 'rate';

/** A refusal as plain data: cheap to make, safe to share. */
export interface Rejection {
  readonly admitted: false;
  readonly reason: RejectionReason;
  /** When asking again makes sense, in milliseconds: 100 to 10 000 for load; for a rate, when the tokens are there. */
  readonly retryAfterMs: number;
  /** Who refused: the guard's or rate limiter's name. */
  readonly name: string;
}

/** brpc's error numbers, as they travel in bodies, headers and `brpcCode`. */
export const BRPC_CODES = {
  ELIMIT: 2004,
  EHOSTDOWN: 112,
  EREJECT: 1018,
} as const;

const REJECTED: unique symbol = Symbol.for('@elimit/core/RejectedError') as never;
const TIMED_OUT: unique symbol = Symbol.for('@elimit/core/TimeoutError') as never;
const BREAKER_OPEN: unique symbol = Symbol.for('@elimit/core/BreakerOpenError') as never;

/** `Retry-After` in whole seconds, from 1, which clients that round down can still obey, to a day: a rate of 0 has no end. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.min(86_400, Math.max(1, Math.ceil(retryAfterMs / 1000)));
}

/** What Express, Koa and others put into the answer to an error that nobody has handled. */
function headersOf({ retryAfterMs }: { readonly retryAfterMs: number }): Record<string, string> {
  return { 'retry-after': `${retryAfterSeconds(retryAfterMs)}` };
}

/** Makes an error without capturing a stack: a refusal is no fault, and a stack costs five times the rest. */
export function withoutStack<T extends Error>(make: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** True for an object with this symbol of `Symbol.for`: what an error's `is` asks, so that it holds for another copy of its package. */
export function hasBrand(value: unknown, brand: symbol): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return brand in value;
  } catch {
    return false; // a proxy may refuse to be asked
  }
}

/** Thrown where a rejection has to travel as an exception. Made by {@link rejected}, without a stack. */
export class RejectedError extends Error {
  override readonly name = 'RejectedError';
  readonly code = 'ERR_REJECTED';
  readonly brpcCode = BRPC_CODES.ELIMIT;
  readonly status: 429 | 503;
  readonly retryAfterMs: number;
  readonly [REJECTED] = true;

  constructor(readonly rejection: Rejection) {
    super(`rejected by ${rejection.name}: ${rejection.reason}`);
    this.status = rejection.reason === 'rate' ? 429 : 503;
    this.retryAfterMs = rejection.retryAfterMs;
  }

  get headers(): Record<string, string> {
    return headersOf(this);
  }

  /** True for a `RejectedError` of this or another copy of the package. */
  static is(value: unknown): value is RejectedError {
    return hasBrand(value, REJECTED);
  }
}

/** The exception form of a rejection. */
export function rejected(rejection: Rejection): RejectedError {
  return withoutStack(() => new RejectedError(rejection));
}

/** Thrown by `execute` when `timeoutMs` passes before the function settles. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
  readonly code = 'ERR_TIMEOUT';
  readonly [TIMED_OUT] = true;

  constructor(
    of: string,
    readonly timeoutMs: number,
  ) {
    super(`${of} took longer than ${timeoutMs} ms`);
  }

  /** True for a `TimeoutError` of this or another copy of the package. */
  static is(value: unknown): value is TimeoutError {
    return hasBrand(value, TIMED_OUT);
  }
}

/** Thrown by a circuit breaker that lets no call through. */
export class BreakerOpenError extends Error {
  override readonly name = 'BreakerOpenError';
  readonly code = 'ERR_BREAKER_OPEN';
  readonly brpcCode = BRPC_CODES.EHOSTDOWN;
  readonly status = 503;
  readonly [BREAKER_OPEN] = true;

  constructor(
    readonly breaker: string,
    readonly retryAfterMs: number,
  ) {
    super(`breaker ${breaker} is open; retry in ${retryAfterMs} ms`);
  }

  get headers(): Record<string, string> {
    return headersOf(this);
  }

  /** True for a `BreakerOpenError` of this or another copy of the package. */
  static is(value: unknown): value is BreakerOpenError {
    return hasBrand(value, BREAKER_OPEN);
  }
}
