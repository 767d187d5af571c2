import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  type ServerAdapterHarness,
  type SuiteApp,
  type SuiteHandler,
  type SuiteLimit,
  type SuiteServer,
  suiteServer,
} from '@elimit/testkit';
import { RequestLimit, signalOf } from '../src/index.js';

/** No framework at all: what the adapters share, on a bare server with the smallest of routers. */
export const bareHarness: ServerAdapterHarness = {
  name: 'bare',
  rejection: 'answered',
  methodName: (path) => `GET ${path}`,
  signalOf,
  start,
};

async function start(app: SuiteApp): Promise<SuiteServer> {
  const made = new Map<SuiteLimit, RequestLimit>();
  const limitOf = (one: SuiteLimit): RequestLimit => {
    const limited = made.get(one) ?? makeLimit(one);
    made.set(one, limited);
    return limited;
  };
  const limits = (app.limits ?? []).map(limitOf);
  const routes = Object.entries(app.routes).map(([template, handler]) => {
    const own = app.routeLimits?.[template];
    return {
      template,
      matches: new RegExp(`^${template.replaceAll(/:\w+/g, '[^/]+')}$`),
      limits: own === undefined ? limits : [...limits, limitOf(own)],
      handler,
    };
  });

  const server = createServer((req, res) => {
    const serve = (): void => {
      const route = routes.find(({ matches }) => matches.test(req.url ?? ''));
      if (route === undefined) res.writeHead(404).end();
      else {
        templates.set(req, route.template);
        pass(route.limits, req, res, () => void handle(route.handler, req, res));
      }
    };
    if (app.around === undefined) serve();
    else app.around(req, serve);
  });
  return suiteServer(server.listen(0, '127.0.0.1'));
}

/** What a framework's router notes on its requests. */
const templates = new WeakMap<IncomingMessage, string>();

function makeLimit({ target, options = {}, refuseWith }: SuiteLimit): RequestLimit {
  const handler =
    refuseWith &&
    ((_req: IncomingMessage, res: ServerResponse, rejection: Parameters<typeof refuseWith>[0]) => {
      const { status, text } = refuseWith(rejection);
      res.writeHead(status).end(text);
    });
  return new RequestLimit(
    target,
    { ...options, handler },
    {
      defaultName: 'bare',
      methodNameOf: (req) => `${req.method} ${templates.get(req)}`,
    },
  );
}

function pass(
  limits: RequestLimit[],
  req: IncomingMessage,
  res: ServerResponse,
  go: () => void,
): void {
  const [first, ...others] = limits;
  if (first === undefined) go();
  else first.handle(req, res, () => pass(others, req, res, go));
}

async function handle(
  handler: SuiteHandler,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  try {
    const text = await handler(req, res);
    if (text !== undefined) res.end(text);
  } catch {
    if (res.headersSent) res.destroy();
    else res.writeHead(500).end('failed');
  }
}
