import { located } from '@elimit/core';
import { type RateRefusal, RequestRateLimit } from '@elimit/node-http';
import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Optional,
  type Type,
} from '@nestjs/common';
import { refusalOf } from './elimit.guard.js';
import { type Handler, HandlerLimits, type HandlerRate } from './handler-limits.js';
import { contextOf, noteContext, requestOf, responseOf } from './http-context.js';
import type { NestRateLimitOptions } from './options.js';
import { proxySettingOf, proxyTrustOf } from './proxy-trust.js';
import { HANDLER_LIMITS, isBranded } from './tokens.js';

const BRAND = Symbol.for('@elimit/nest/RateLimitGuard');

type Call = [context: ExecutionContext, guard: RateLimitGuard];
interface Rate {
  readonly limited: RequestRateLimit<Call>;
  readonly options: NestRateLimitOptions;
}

/** The limiters of one class of guards in one application. */
interface Made {
  readonly ofHandlers: WeakMap<object, Map<Handler, readonly Rate[]>>;
  readonly byOwner: WeakMap<object, Map<unknown, Rate>>;
}

/**
 * By application and class: Nest makes a guard for each module that binds it, and, where it injects something of a
 * request's scope, for each request. What they count is one thing.
 */
const madeBy = new WeakMap<HandlerLimits, Map<unknown, Made>>();
/** Without a module, all guards of one class count together, in whatever application of this process. */
const alone = new HandlerLimits();

function madeFor(limits: HandlerLimits, guard: unknown): Made {
  const byClass = keptIn(madeBy, limits, () => new Map<unknown, Made>());
  return keptIn(byClass, guard, () => ({ ofHandlers: new WeakMap(), byOwner: new WeakMap() }));
}

/** What stands under this key; made the first time. */
function keptIn<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let kept = map.get(key);
  if (kept === undefined) {
    kept = make();
    map.set(key, kept);
  }
  return kept;
}

/**
 * Makes a handler's limiters, if this is a guard of ours that is about to stand in front of it: when the application
 * starts, so that all limiters are seen from then on, and none is taken for one that is made for a request.
 */
export let makeLimiters: (guard: unknown, of: Type, handler: Handler) => void;

/**
 * Counts HTTP calls by their handlers' `@RateLimit`, or throws with 429. Registered for all handlers by
 * `ElimitModule`, in front of `ElimitGuard`; a subclass goes into its `rateLimitGuard`. Calls in other contexts pass.
 *
 * Guards of one class have their limiters in common: a call that meets two of them is counted once. Who counts by
 * two trackers makes two classes.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly #limits: HandlerLimits;
  readonly #made: Made;

  /** @param limits - the module's; without a module, what decorators say and nothing else */
  constructor(@Optional() @Inject(HANDLER_LIMITS) limits?: unknown) {
    this.#limits = (limits as HandlerLimits | undefined) ?? alone;
    this.#made = madeFor(this.#limits, new.target);
  }

  static {
    makeLimiters = (guard, of, handler) => {
      if (typeof guard === 'object' && guard !== null && #limits in guard) {
        guard.#ratesOf(of, handler);
      }
    };
  }

  /**
   * True if the call was counted and may go on, or is not to be counted.
   *
   * @throws ElimitException, or what the module's `exception` makes, for a refused call; and what a callback throws
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const rates = this.#ratesOf(context.getClass(), context.getHandler() as never);
    return rates.length === 0 ? true : this.#check(context, rates);
  }

  /** True for calls that are not counted; beside `@SkipRateLimit`. */
  protected shouldSkip(_context: ExecutionContext): boolean | Promise<boolean> {
    return false;
  }

  /** Who is counted. `undefined`: the client's address, IPv6 by subnet. */
  protected getTracker(
    _context: ExecutionContext,
  ): string | undefined | Promise<string | undefined> {
    return undefined;
  }

  /** What that is counted as: the tracker itself, since each handler has a limiter of its own. */
  protected generateKey(_context: ExecutionContext, tracker: string): string {
    return tracker;
  }

  async #check(context: ExecutionContext, rates: readonly Rate[]): Promise<boolean> {
    if (await this.shouldSkip(context)) return true;
    const req = requestOf(context);
    const res = responseOf(context);
    noteContext(req, context);
    for (const { limited, options } of rates) {
      const { refusal } = await limited.check(req, res, context, this);
      if (refusal !== undefined) throw await this.#refusal(limited, refusal, options, context);
    }
    return true;
  }

  async #refusal(
    limited: RequestRateLimit<Call>,
    refusal: RateRefusal,
    options: NestRateLimitOptions,
    context: ExecutionContext,
  ): Promise<unknown> {
    const { statusCode, retryAfterMs } = refusal;
    const { name } = limited.limiter;
    const message =
      typeof options.message === 'function' ? await options.message(context) : options.message;
    return refusalOf({ admitted: false, reason: 'rate', retryAfterMs, name }, context, {
      exception: this.#limits.options.exception,
      statusCode,
      message,
    });
  }

  #ratesOf(of: Type, handler: Handler): readonly Rate[] {
    const { ofHandlers } = this.#made;
    const known = ofHandlers.get(of)?.get(handler);
    if (known !== undefined) return known; // as for every call but the first
    const rates = this.#limits.ratesOf(of, handler).map((rate) => this.#rateOf(of, rate));
    keptIn(ofHandlers, of, () => new Map<Handler, readonly Rate[]>()).set(handler, rates);
    return rates;
  }

  /** A handler inherited by two controllers has a limiter in each. */
  #rateOf(of: object, rate: HandlerRate): Rate {
    const owner = rate.options.shared === true ? rate.owner : of;
    const byKey = keptIn(this.#made.byOwner, owner, () => new Map<unknown, Rate>());
    return keptIn(byKey, rate.key, () => ({
      limited: located(rate.where, () => this.#make(rate)),
      options: rate.options,
    }));
  }

  #make({ name, options }: HandlerRate): RequestRateLimit<Call> {
    const { getTracker, generateKey } = options;
    const limited: RequestRateLimit<Call> = new RequestRateLimit<Call>(
      {
        ...this.#limits.rateOptions(options, name),
        ...(this.#countsOtherwise(options) && { keyGenerator }),
      },
      {
        addressOf: (req) => addressOf(contextOf(req)),
        trustOf: (req) => proxyTrustOf(contextOf(req)),
        proxySettingOf: (req) => proxySettingOf(contextOf(req)),
        stateOf: (req) => contextOf(req).switchToHttp().getRequest<object>(),
      },
    );
    async function keyGenerator(context: ExecutionContext, guard: RateLimitGuard): Promise<string> {
      const tracker =
        (await (getTracker ?? ((one) => guard.getTracker(one)))(context)) ??
        limited.keyOf(addressOf(context));
      return (generateKey ?? ((one, of) => guard.generateKey(one, of)))(context, tracker);
    }
    return limited;
  }

  /** Left to itself, a limiter counts addresses, at once, and warns of proxies nobody told it of. */
  #countsOtherwise({ getTracker, generateKey }: NestRateLimitOptions): boolean {
    const own = RateLimitGuard.prototype;
    return (
      getTracker !== undefined ||
      generateKey !== undefined ||
      this.getTracker !== own.getTracker ||
      this.generateKey !== own.generateKey
    );
  }

  /** True for a `RateLimitGuard`, its class, or those of another copy of the package. */
  static is(value: unknown): boolean {
    return isBranded(value, BRAND);
  }
}
Object.defineProperty(RateLimitGuard.prototype, BRAND, { value: true });

function addressOf(context: ExecutionContext): string | undefined {
  return context.switchToHttp().getRequest<{ readonly ip?: string }>().ip;
}
