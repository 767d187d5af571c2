import type { IncomingMessage } from 'node:http';
import {
  type ServerAdapterHarness,
  type SuiteApp,
  type SuiteHandler,
  type SuiteLimit,
  type SuiteServer,
  suiteServer,
} from '@elimit/testkit';
import { Router } from '@koa/router';
import Koa3, { type Context, type Middleware } from 'koa';
import Koa2 from 'koa-2';
import { type KoaLimitOptions, limit, signalOf } from '../src/index.js';

export type KoaModule = typeof Koa3;

/** Both majors, with the types of the newer one: what we use of them is the same. */
export const KOA: readonly { version: string; Koa: KoaModule }[] = [
  { version: '3', Koa: Koa3 },
  { version: '2', Koa: Koa2 as unknown as KoaModule },
];

const contexts = new WeakMap<IncomingMessage, Context>();

/** Koa, for the suite that all server adapters share. */
export function koaHarness(version: string, Koa: KoaModule): ServerAdapterHarness {
  return {
    name: `koa ${version}`,
    rejection: 'answered',
    methodName: (path) => `GET ${path}`,
    signalOf: (req) => signalOf(contexts.get(req) as Context),
    start: (app) => start(Koa, app),
  };
}

/** A router's routes, for `app.use`: its types and Koa's know too little of each other. */
export function routesOf(router: Router): Middleware {
  return router.routes() as unknown as Middleware;
}

/** Starts an app on a free port. */
export async function listen(app: Koa3): Promise<SuiteServer> {
  app.silent = true; // Koa's own error handling, without its lines on stderr
  return suiteServer(app.listen(0, '127.0.0.1'));
}

function start(Koa: KoaModule, suite: SuiteApp): Promise<SuiteServer> {
  const app = new Koa();
  // one middleware for each limit of the suite, wherever it is mounted
  const made = new Map<SuiteLimit, Middleware>();
  const limitOf = (one: SuiteLimit): Middleware => {
    let middleware = made.get(one);
    if (middleware === undefined) {
      middleware = middlewareOf(one);
      made.set(one, middleware);
    }
    return middleware;
  };
  app.use((ctx, next) => {
    contexts.set(ctx.req, ctx);
    return next();
  });
  const { around } = suite;
  if (around !== undefined) {
    app.use(
      (ctx, next) =>
        new Promise((resolve, reject) => around(ctx.req, () => void next().then(resolve, reject))),
    );
  }
  for (const one of suite.limits ?? []) app.use(limitOf(one));
  const router = new Router();
  for (const [path, handler] of Object.entries(suite.routes)) {
    const own = suite.routeLimits?.[path];
    router.all(path, ...(own === undefined ? [] : [limitOf(own)]), routeHandler(handler));
  }
  app.use(router.routes());
  return listen(app);
}

function middlewareOf({ target, options = {}, refuseWith }: SuiteLimit): Middleware {
  const { skip, priority, isFailure, ...alike } = options;
  const own: KoaLimitOptions = {
    ...alike,
    ...(skip && { skip: ({ req }) => skip(req) }),
    ...(priority && { priority: ({ req }) => priority(req) }),
    ...(isFailure && { isFailure: ({ req, res }) => isFailure(req, res) }),
  };
  if (refuseWith === undefined) return limit(target, own);
  return limit(target, {
    ...own,
    handler: (ctx, rejection) => {
      const { status, text } = refuseWith(rejection);
      ctx.status = status;
      ctx.body = text;
    },
  });
}

function routeHandler(handler: SuiteHandler): Middleware {
  return async (ctx) => {
    ctx.status = 200; // Koa's answers are 404 until somebody says otherwise, those past Koa too
    const text = await handler(ctx.req, ctx.res);
    if (text === undefined) ctx.respond = false;
    else ctx.body = text;
  };
}
