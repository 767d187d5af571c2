import {
  giveExpressKeysEarly,
  type LimitOptions,
  type LimitTarget,
  RequestLimit,
} from '@elimit/node-http';
import type { Request, Response } from 'express';
import type { Middleware } from './middleware.js';
import { routeNameOf } from './route-name.js';

/**
 * Express middleware that limits how many of the requests behind it are served at once: on an app, a
 * router or a route. It refuses the others with 503 and the ELIMIT body, before their bodies are read.
 *
 * @param target - a max-concurrency value for a guard of its own, or a guard or guards made before
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function limit(
  target: LimitTarget,
  options: LimitOptions<Request, Response> = {},
): Middleware {
  const limited = new RequestLimit<Request, Response>(target, options, {
    defaultName: 'app',
    methodNameOf: routeNameOf,
  });
  giveExpressKeysEarly();
  return function limitRequests(req, res, next) {
    limited.handle(req as Request, res as Response, next);
  };
}
