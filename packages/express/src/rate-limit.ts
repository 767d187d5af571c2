import {
  giveExpressKeysEarly,
  type ProxyTrust,
  type RateLimitOptions,
  RequestRateLimit,
} from '@elimit/node-http';
import type { Request, Response } from 'express';
import type { Middleware } from './middleware.js';

/** Middleware that also lets its limiter be reached. */
export interface RateLimitHandler extends Middleware {
  /** Makes a key's bucket new. */
  resetKey(key: string): void | Promise<void>;
  /** The key that an address is counted by. */
  keyOf(address: string): string;
  /** Gives leases back and leaves the registry. */
  close(): Promise<void>;
}

/**
 * Express middleware that limits how many requests a client may start: `rate` a second and `burst` at
 * once, or `limit` in `windowMs`. It answers the others with 429, `Retry-After` and the ELIMIT body.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function rateLimit(
  options: RateLimitOptions<[req: Request, res: Response]>,
): RateLimitHandler {
  const limited = new RequestRateLimit<[Request, Response]>(options, {
    // a router without an app makes no Express request
    addressOf: (req) => (req as Request).ip ?? req.socket.remoteAddress,
    trustOf: (req) => trustOf(req as Request),
  });
  giveExpressKeysEarly();
  const { limiter } = limited;
  const middleware: Middleware = function rateLimitRequests(req, res, next) {
    limited.handle(req, res, next, req as Request, res as Response);
  };
  return Object.assign(middleware, {
    resetKey: (key: string) => limiter.reset(key),
    keyOf: (address: string) => limited.keyOf(address),
    close: () => limiter.close(),
  });
}

function trustOf(req: Request): ProxyTrust {
  const { app } = req as { readonly app?: Request['app'] };
  const setting: unknown = app?.get('trust proxy');
  if (setting === true) return 'all';
  return setting === false || setting === undefined ? 'none' : 'some';
}
