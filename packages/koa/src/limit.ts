import type { IncomingMessage } from 'node:http';
import { functionOf, objectOf, type Priority, type Rejection } from '@elimit/core';
import {
  endCalls,
  type LimitOptions,
  type LimitTarget,
  markRefused,
  RequestLimit,
  writeRejection,
} from '@elimit/node-http';
import type { Context, Middleware, Next } from 'koa';
import { contextOf, noteContext } from './context-of.js';
import { routeNameOf } from './route-name.js';

/** The options of `limit`: as in all adapters, with Koa's context where others have a request and a response. */
export interface KoaLimitOptions
  extends Omit<LimitOptions, 'skip' | 'handler' | 'priority' | 'isFailure'> {
  /** True for requests that go through unlimited and uncounted: health checks, long polls. */
  readonly skip?: ((ctx: Context) => boolean) | undefined;
  /** Answers a refused request, instead of the ELIMIT answer. `next` goes on as if nothing had been. */
  readonly handler?: ((ctx: Context, rejection: Rejection, next: Next) => unknown) | undefined;
  /** A call's class; under pressure the lower ones go first. @default 'default' */
  readonly priority?: ((ctx: Context) => Priority) | undefined;
  /** What counts as a failure of ours, asked when the answer has been written. @default a status of 500 and above */
  readonly isFailure?: ((ctx: Context) => boolean) | undefined;
}

/**
 * Koa middleware that limits how many of the requests behind it are served at once: on an app, a router or a
 * route. It refuses the others with 503 and the ELIMIT body, before their bodies are read.
 *
 * @param target - a max-concurrency value for a guard of its own, or a guard or guards made before
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function limit(target: LimitTarget, options: KoaLimitOptions = {}): Middleware {
  const limited = new RequestLimit(target, forRequests(options), {
    defaultName: 'app',
    methodNameOf: (req) => routeNameOf(contextOf(req)),
  });
  return async function limitRequests(ctx: Context, next) {
    noteContext(ctx);
    const asked = limited.admit(ctx.req, ctx.res);
    const verdict = asked instanceof Promise ? await asked : asked;
    if (verdict === 'go') return (await next()) as unknown;
    // nobody waits for an answer; what stands in front of us ends as it would have
    if (verdict === 'gone') return undefined;
    return await refuse(ctx, verdict, options, next);
  };
}

function refuse(ctx: Context, rejection: Rejection, options: KoaLimitOptions, next: Next): unknown {
  const { handler } = options;
  if (handler === undefined) {
    answer(ctx, rejection, options);
    return undefined;
  }
  markRefused(ctx.res, true);
  return handler(ctx, rejection, () => {
    markRefused(ctx.res, false); // it goes on after all
    return next();
  });
}

/** Written at once, past Koa: what stands in front of us sees its status, and cannot change it. */
function answer(ctx: Context, rejection: Rejection, options: KoaLimitOptions): void {
  ctx.respond = false;
  endCalls(ctx.res); // of guards further out: this is an answer of ours, and says nothing of their load
  writeRejection(ctx.res, rejection, options);
}

/** The same options, for what knows Node's requests and responses only. */
function forRequests(options: KoaLimitOptions): LimitOptions {
  const { skip, handler, priority, isFailure, ...alike } = objectOf('limit', options);
  if (handler !== undefined) functionOf('limit.handler', handler);
  return {
    ...alike,
    skip: onContext('skip', skip),
    priority: onContext('priority', priority),
    isFailure: onContext('isFailure', isFailure),
    // for a call that is refused while its handler runs and waits for a body: there is no way back through Koa
    handler: (req, _res, rejection) => answer(contextOf(req), rejection, options),
  };
}

function onContext<T>(
  name: string,
  callback: ((ctx: Context) => T) | undefined,
): ((req: IncomingMessage) => T) | undefined {
  if (callback === undefined) return undefined;
  functionOf(`limit.${name}`, callback);
  return (req) => callback(contextOf(req));
}
