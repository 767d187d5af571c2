import { functionOf, objectOf } from '@elimit/core';
import {
  type ProxyTrust,
  type RateLimitOptions,
  type RateRefusal,
  RequestRateLimit,
} from '@elimit/node-http';
import type { Context, Middleware, Next } from 'koa';
import { contextOf, noteContext } from './context-of.js';

/** The options of `rateLimit`: as in all adapters; callbacks get Koa's context. */
export interface KoaRateLimitOptions extends Omit<RateLimitOptions<[ctx: Context]>, 'handler'> {
  /** Answers a refused request in place of the ELIMIT answer. Headers are set already. `limit`'s gets its rejection before `next`. */
  readonly handler?: ((ctx: Context, next: Next, refusal: RateRefusal) => unknown) | undefined;
}

/** Middleware that also lets its limiter be reached. */
export interface RateLimitMiddleware extends Middleware {
  /** Makes a key's bucket new. */
  resetKey(key: string): void | Promise<void>;
  /** The key that an address is counted by. */
  keyOf(address: string): string;
  /** Gives leases back and leaves the registry. */
  close(): Promise<void>;
}

/**
 * Koa middleware that limits how many requests a client may start: `rate` a second and `burst` at once, or
 * `limit` in `windowMs`. It answers the others with 429, `Retry-After` and the ELIMIT body. `ctx.state.rateLimit`
 * tells how a request stands; its headers are kept on errors, too.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function rateLimit(options: KoaRateLimitOptions): RateLimitMiddleware {
  const { handler, ...alike } = objectOf('rateLimit', options);
  if (handler !== undefined) functionOf('rateLimit.handler', handler);
  const limited = new RequestRateLimit<[Context]>(alike, {
    addressOf: (req) => contextOf(req).ip,
    trustOf: (req) => trustOf(contextOf(req)),
    proxySettingOf: () => PROXIES,
    stateOf: (req) => contextOf(req).state,
  });
  const { limiter } = limited;
  const middleware: Middleware = async function rateLimitRequests(ctx: Context, next) {
    noteContext(ctx);
    const asked = limited.check(ctx.req, ctx.res, ctx);
    const { refusal } = asked instanceof Promise ? await asked : asked;
    try {
      if (refusal === undefined) return (await next()) as unknown;
      if (handler !== undefined) return await handler(ctx, next, refusal);
    } catch (error) {
      keepHeaders(ctx, error);
      throw error;
    }
    return await refuse(limited, ctx, refusal);
  };
  return Object.assign(middleware, {
    resetKey: (key: string) => limiter.reset(key),
    keyOf: (address: string) => limited.keyOf(address),
    close: () => limiter.close(),
  });
}

/** Written past Koa; done once it is written, since a `message` may be a function that takes its time. */
function refuse(
  limited: RequestRateLimit<[Context]>,
  ctx: Context,
  refusal: RateRefusal,
): Promise<void> {
  const { res } = ctx;
  ctx.respond = false;
  return new Promise<void>((resolve, reject) => {
    res.once('prefinish', resolve).once('close', resolve);
    limited.refuse(res, refusal, reject, ctx);
  });
}

/** Koa takes all headers off an error's answer but those that the error carries. */
function keepHeaders(ctx: Context, error: unknown): void {
  if (typeof error !== 'object' || error === null) return;
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(ctx.res.getHeaders())) {
    if (/^(x-)?ratelimit/.test(name)) kept[name] = value;
  }
  const carrier = error as { headers?: Record<string, unknown> };
  // the error's own stand
  for (const [name, value] of Object.entries(carrier.headers ?? {})) kept[name] = value;
  try {
    Object.defineProperty(carrier, 'headers', {
      value: kept,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  } catch {
    // frozen: an error without our headers is better than another error
  }
}

const PROXIES = {
  all: 'app.proxy is true and app.maxIpsCount is not set',
  cure: 'set app.maxIpsCount to the number of your proxies',
  none: 'app.proxy is off',
};

function trustOf(ctx: Context): ProxyTrust {
  const { proxy, maxIpsCount } = ctx.app as { proxy?: boolean; maxIpsCount?: number };
  if (proxy !== true) return 'none';
  return maxIpsCount !== undefined && maxIpsCount > 0 ? 'some' : 'all';
}
