import {
  BreakerOpenError,
  type Entry,
  type Outcome,
  RejectedError,
  retryAfterSeconds,
} from '@elimit/core';
import { loopMonitor, skips } from '@elimit/node-http';
import {
  type CallHandler,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  type NestInterceptor,
  Optional,
} from '@nestjs/common';
import { catchError, Observable } from 'rxjs';
import { ElimitException, thrownFor } from './elimit.exception.js';
import { HandlerLimits } from './handler-limits.js';
import { responseOf, setHeaders } from './http-context.js';
import { HANDLER_LIMITS, INTERCEPTED_CONTEXTS, isBranded } from './tokens.js';

const BRAND = Symbol.for('@elimit/nest/ElimitInterceptor');

/** Calls that an interceptor has counted: another one lets them pass. */
const counted = new WeakSet<ExecutionContext>();

/**
 * Over HTTP, turns a refusal by a guard or breaker inside of a handler into an `HttpException` of its status.
 * Elsewhere, bound by hand, it limits calls by their handlers' decorators, and gives the slot back when the call's
 * stream has completed, failed, or been left. Registered by `ElimitModule`, it does that in the `contexts` of its options.
 */
@Injectable()
export class ElimitInterceptor implements NestInterceptor {
  readonly #limits: HandlerLimits;
  readonly #contexts: readonly string[] | undefined;

  /**
   * @param limits - the module's; without a module, what decorators say and nothing else
   * @param contexts - those besides HTTP that are limited; all by default
   */
  constructor(
    @Optional() @Inject(HANDLER_LIMITS) limits?: unknown,
    @Optional() @Inject(INTERCEPTED_CONTEXTS) contexts?: readonly string[],
  ) {
    this.#limits = (limits as HandlerLimits | undefined) ?? new HandlerLimits();
    this.#contexts = contexts;
  }

  /**
   * Hands the call on, limited where it is to be.
   *
   * @returns a stream that fails with an `ElimitException`, or what the module's `exception` makes, for a refused call
   */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const type = context.getType<string>();
    if (type === 'http') {
      return next.handle().pipe(
        catchError((error: unknown) => {
          throw forHttp(error, context);
        }),
      );
    }
    if (this.#contexts !== undefined && !this.#contexts.includes(type)) return next.handle();
    return this.#limit(context, next);
  }

  #limit(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const limit = this.#limits.limitOf(context.getClass(), context.getHandler() as never);
    if (limit === undefined || skips(limit.options.skip?.(context))) return next.handle();
    if (counted.has(context)) return next.handle();
    counted.add(context);
    const { guard, owner, options } = limit;
    loopMonitor().watch(owner); // as over HTTP: its server's guard is told too, and each of them once
    // taken when somebody subscribes: what nobody asks for never runs, and would never end
    return new Observable((subscriber) => {
      const entry: Entry = guard.tryAcquire({
        timeoutMs: options.timeoutMs,
        priority: options.priority?.(context),
      });
      if (!entry.admitted) {
        subscriber.error(thrownFor(entry, context, options));
        return undefined;
      }
      const inner = next.handle().subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => {
          entry.release(outcomeOf(error));
          subscriber.error(error);
        },
        complete: () => {
          entry.release('success');
          subscriber.complete();
        },
      });
      return () => {
        inner.unsubscribe();
        entry.release('abandoned'); // unless it has ended: a permit is released once
      };
    });
  }

  /** True for an `ElimitInterceptor`, its class, or those of another copy of the package. */
  static is(value: unknown): boolean {
    return isBranded(value, BRAND);
  }
}
Object.defineProperty(ElimitInterceptor.prototype, BRAND, { value: true });

/** What an exception says of our own load. */
function outcomeOf(error: unknown): Outcome {
  if (RejectedError.is(error) || BreakerOpenError.is(error) || ElimitException.is(error)) {
    return 'ignored';
  }
  const { getStatus } = (error ?? {}) as { getStatus?: () => number };
  const status = typeof getStatus === 'function' ? getStatus.call(error) : 500;
  return status >= 500 ? 'failure' : 'success';
}

/** Without the ELIMIT mark: what refused was not this service, but something that it called. */
function forHttp(error: unknown, context: ExecutionContext): unknown {
  if (!RejectedError.is(error) && !BreakerOpenError.is(error)) return error;
  const { status, code, retryAfterMs } = error;
  const message = status === 429 ? 'Too Many Requests' : 'Service Unavailable';
  setHeaders(responseOf(context), { 'retry-after': String(retryAfterSeconds(retryAfterMs)) });
  return new HttpException({ statusCode: status, message, code }, status, { cause: error });
}
