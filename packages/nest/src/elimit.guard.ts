import type { Rejection } from '@elimit/core';
import {
  endCalls,
  type LimitTarget,
  type LimitVerdict,
  type RequestLimit,
} from '@elimit/node-http';
import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Optional,
} from '@nestjs/common';
import { type Answering, headersOf, thrownFor } from './elimit.exception.js';
import { HandlerLimits, requestLimit } from './handler-limits.js';
import { noteContext, requestOf, responseOf, setHeaders } from './http-context.js';
import { checkBoundOptions } from './option-checks.js';
import type { NestGuardOptions } from './options.js';
import { HANDLER_LIMITS, isBranded } from './tokens.js';

const BRAND = Symbol.for('@elimit/nest/ElimitGuard');

/**
 * Admits HTTP calls by their handlers' limits, or throws. Registered for all handlers by `ElimitModule`, or bound
 * by hand; a call that meets it twice is counted once. Calls in other contexts pass.
 */
@Injectable()
export class ElimitGuard implements CanActivate {
  readonly #limits: HandlerLimits;

  /** @param limits - the module's; without a module, what decorators say and nothing else */
  constructor(@Optional() @Inject(HANDLER_LIMITS) limits?: unknown) {
    this.#limits = (limits as HandlerLimits | undefined) ?? new HandlerLimits();
  }

  /**
   * True when the call's turn has come. Its client may leave first: then this promise never settles.
   *
   * @throws ElimitException, or what the module's `exception` makes, for a refused call
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const found = this.#limits.limitOf(context.getClass(), context.getHandler() as never);
    if (found === undefined) return true;
    return activate(found.limited, context, found.options);
  }

  /** True for an `ElimitGuard`, its class, or those of another copy of the package. */
  static is(value: unknown): boolean {
    return isBranded(value, BRAND);
  }
}
Object.defineProperty(ElimitGuard.prototype, BRAND, { value: true });

/**
 * A Nest guard around a limit that no decorator names, to be bound by hand: `app.useGlobalGuards(limit('auto'))`,
 * `@UseGuards(limit(guards))`.
 *
 * @param target - a max-concurrency value for a guard of its own, or a guard or guards made before, which have had
 *   their `dryRun`, `random` and `registry`
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function limit(target: LimitTarget, options: NestGuardOptions = {}): CanActivate {
  checkBoundOptions(options);
  const names = new HandlerLimits();
  const { name, exception: _, ...rest } = options;
  const limited = requestLimit(
    target,
    rest,
    name ?? 'app',
    (context) => name ?? names.nameOf(context.getClass(), context.getHandler() as never),
  );
  return {
    canActivate: (context) =>
      context.getType() === 'http' ? activate(limited, context, options) : true,
  };
}

function activate(
  limited: RequestLimit,
  context: ExecutionContext,
  options: Answering,
): boolean | Promise<boolean> {
  const req = requestOf(context);
  noteContext(req, context);
  const asked = limited.admit(req, responseOf(context));
  if (asked instanceof Promise) return asked.then((verdict) => obey(verdict, context, options));
  return obey(asked, context, options);
}

function obey(
  verdict: LimitVerdict,
  context: ExecutionContext,
  options: Answering,
): boolean | Promise<boolean> {
  if (verdict === 'go') return true;
  // the client has left: nobody waits for an answer, and nothing of Nest's is open before its guards have passed
  if (verdict === 'gone') return new Promise<boolean>(() => {});
  throw refusalOf(verdict, context, options);
}

/** Makes what is thrown for a refusal over HTTP, and sets its headers: exception filters know of none. */
export function refusalOf(
  rejection: Rejection,
  context: ExecutionContext,
  answering: Answering,
): unknown {
  const res = responseOf(context);
  endCalls(res); // of guards further out: this is an answer of ours, and says nothing of their load
  setHeaders(res, headersOf(rejection));
  return thrownFor(rejection, context, answering);
}
