import {
  type ServerAdapterHarness,
  type SuiteApp,
  type SuiteHandler,
  type SuiteLimit,
  type SuiteServer,
  suiteServer,
} from '@elimit/testkit';
import express5, { type ErrorRequestHandler, type RequestHandler } from 'express';
import express4 from 'express-4';
import { limit, signalOf } from '../src/index.js';

export type ExpressModule = typeof express5;

/** Both majors, with the types of the newer one: what we use of them is the same. */
export const EXPRESS: readonly { version: string; express: ExpressModule }[] = [
  { version: '5', express: express5 },
  { version: '4', express: express4 as unknown as ExpressModule },
];

/** Express, for the suite that all server adapters share. */
export function expressHarness(version: string, express: ExpressModule): ServerAdapterHarness {
  return {
    name: `express ${version}`,
    rejection: version === '4' ? 'unanswered' : 'answered',
    methodName: (path) => `GET ${path}`,
    signalOf,
    start: (app) => start(express, app, version === '4'),
  };
}

async function start(
  express: ExpressModule,
  suite: SuiteApp,
  dropsPromises: boolean,
): Promise<SuiteServer> {
  const app = express();
  // one middleware for each limit of the suite, wherever it is mounted
  const made = new Map<SuiteLimit, RequestHandler>();
  const limitOf = (one: SuiteLimit): RequestHandler => {
    let middleware = made.get(one);
    if (middleware === undefined) {
      middleware = middlewareOf(one);
      made.set(one, middleware);
    }
    return middleware;
  };
  const { around } = suite;
  if (around !== undefined) app.use((req, _res, next) => around(req, () => next()));
  for (const one of suite.limits ?? []) app.use(limitOf(one));
  for (const [path, handler] of Object.entries(suite.routes)) {
    const own = suite.routeLimits?.[path];
    app.all(
      path,
      ...(own === undefined ? [] : [limitOf(own)]),
      routeHandler(handler, dropsPromises),
    );
  }
  app.use(quietly);
  return suiteServer(app.listen(0, '127.0.0.1'));
}

function middlewareOf({ target, options = {}, refuseWith }: SuiteLimit): RequestHandler {
  if (refuseWith === undefined) return limit(target, options);
  return limit(target, {
    ...options,
    handler: (_req, res, rejection) => {
      const { status, text } = refuseWith(rejection);
      res.status(status).send(text);
    },
  });
}

function routeHandler(handler: SuiteHandler, dropsPromises: boolean): RequestHandler {
  return (req, res) => {
    const answer = handler(req, res);
    if (answer === undefined) return undefined;
    if (typeof answer === 'string') return void res.send(answer);
    const sent = (async () => {
      const text = await answer;
      if (text !== undefined) res.send(text);
    })();
    // Express 4 drops the promise: nobody answers, and nobody hears of it
    if (dropsPromises) sent.catch(() => {});
    return sent;
  };
}

/** Express's own error handling, without its line on stderr. */
const quietly: ErrorRequestHandler = (error: unknown, _req, res, next) => {
  if (res.headersSent) next(error);
  else res.status((error as { status?: number }).status ?? 500).send('failed');
};
