import { functionOf } from '@elimit/core';
import { type ProxyTrust, type RateRefusal, RequestRateLimit } from '@elimit/node-http';
import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  Optional,
} from '@nestjs/common';
import { refusalOf } from './elimit.guard.js';
import { type Handler, HandlerLimits, type HandlerRate } from './handler-limits.js';
import { contextOf, noteContext, requestOf, responseOf } from './http-context.js';
import type { NestRateLimitOptions } from './options.js';
import { HANDLER_LIMITS, isBranded } from './tokens.js';

const BRAND = Symbol.for('@elimit/nest/RateLimitGuard');

type Call = [context: ExecutionContext];
interface Rate {
  readonly limited: RequestRateLimit<Call>;
  readonly options: NestRateLimitOptions;
}

/**
 * Counts HTTP calls by their handlers' `@RateLimit`, or throws with 429. Registered for all handlers by
 * `ElimitModule`, in front of `ElimitGuard`; a subclass goes into its `rateLimitGuard`. Calls in other contexts pass.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly #limits: HandlerLimits;
  readonly #rates = new WeakMap<object, Map<Handler, readonly Rate[]>>();
  readonly #shared = new WeakMap<object, Map<string, Rate>>();

  /** @param limits - the module's; without a module, what decorators say and nothing else */
  constructor(@Optional() @Inject(HANDLER_LIMITS) limits?: unknown) {
    this.#limits = (limits as HandlerLimits | undefined) ?? new HandlerLimits();
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const rates = this.#ratesOf(context);
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
      const { refusal } = await limited.check(req, res, context);
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
    } as Parameters<typeof refusalOf>[2]);
  }

  #ratesOf(context: ExecutionContext): readonly Rate[] {
    const of = context.getClass();
    const handler = context.getHandler() as unknown as Handler;
    let byHandler = this.#rates.get(of);
    if (byHandler === undefined) {
      byHandler = new Map();
      this.#rates.set(of, byHandler);
    }
    let rates = byHandler.get(handler);
    if (rates === undefined) {
      rates = this.#limits.ratesOf(of, handler).map((rate) => this.#made(of, rate));
      byHandler.set(handler, rates);
    }
    return rates;
  }

  /** A handler inherited by two controllers has a limiter in each. */
  #made(of: object, rate: HandlerRate): Rate {
    const owner = rate.options.shared === true ? rate.owner : of;
    let byName = this.#shared.get(owner);
    if (byName === undefined) {
      byName = new Map();
      this.#shared.set(owner, byName);
    }
    let made = byName.get(rate.name);
    if (made === undefined) {
      made = { limited: this.#make(rate), options: rate.options };
      byName.set(rate.name, made);
    }
    return made;
  }

  #make({ name, options }: HandlerRate): RequestRateLimit<Call> {
    const { ttl, getTracker, generateKey, shared: _, ...rest } = options;
    if (ttl !== undefined && rest.windowMs !== undefined) {
      throw new TypeError(`@RateLimit on ${name}: ttl and windowMs are the same: give one`);
    }
    if (getTracker !== undefined) functionOf('rateLimit.getTracker', getTracker);
    if (generateKey !== undefined) functionOf('rateLimit.generateKey', generateKey);
    const limited: RequestRateLimit<Call> = new RequestRateLimit<Call>(
      {
        onEvent: this.#limits.options.onEvent,
        ...rest,
        ...(rest.limiter === undefined && { name }),
        ...(ttl !== undefined && { windowMs: ttl }),
        ...(this.#countsOtherwise(options) && { keyGenerator }),
      },
      {
        addressOf: (req) => addressOf(contextOf(req)),
        trustOf: (req) => trustOf(contextOf(req)),
        stateOf: (req) => contextOf(req).switchToHttp().getRequest<object>(),
      },
    );
    const trackerOf = async (context: ExecutionContext): Promise<string> =>
      (await (getTracker ?? ((one) => this.getTracker(one)))(context)) ??
      limited.keyOf(addressOf(context));
    const keyOf = generateKey ?? ((context, tracker) => this.generateKey(context, tracker));
    async function keyGenerator(context: ExecutionContext): Promise<string> {
      return keyOf(context, await trackerOf(context));
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

interface FrameworkRequest {
  readonly ip?: string;
  /** Fastify's, if it was told of proxies. */
  readonly ips?: readonly string[];
  /** Express's. */
  readonly app?: { get(setting: string): unknown };
}

function addressOf(context: ExecutionContext): string | undefined {
  return context.switchToHttp().getRequest<FrameworkRequest>().ip;
}

function trustOf(context: ExecutionContext): ProxyTrust {
  const { app, ips } = context.switchToHttp().getRequest<FrameworkRequest>();
  if (app === undefined) return ips === undefined ? 'none' : 'some';
  const setting = app.get('trust proxy');
  if (setting === true) return 'all';
  return setting === false || setting === undefined ? 'none' : 'some';
}
