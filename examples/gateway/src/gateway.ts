import { breaker, type Channel, createChannel } from '@elimit/axios';
import { limit, signalOf, timeLeftOf } from '@elimit/express';
import axios from 'axios';
import express, { type ErrorRequestHandler, type Express, type Request } from 'express';

/** The nodes of each service behind the gateway. */
export interface Upstreams {
  readonly users: readonly string[];
  readonly orders: readonly string[];
  readonly prices: readonly string[];
}

export interface Gateway {
  readonly app: Express;
  close(): void;
}

/** One front door: its own limit in front, and one channel for each service behind it. */
export function createGateway(upstreams: Upstreams): Gateway {
  const channels: Channel[] = [];
  const serviceAt = (name: string, nodes: readonly string[], timeoutMs: number) => {
    const channel = createChannel({ name, nodes, timeoutMs, healthCheck: { path: '/healthz' } });
    channels.push(channel);
    return breaker(axios.create(), channel);
  };
  const users = serviceAt('users', upstreams.users, 800);
  const orders = serviceAt('orders', upstreams.orders, 800);
  const prices = serviceAt('prices', upstreams.prices, 400);

  const app = express();
  app.get('/endpoints', (_req, res) => {
    res.json(channels.map((channel) => ({ name: channel.name, nodes: channel.endpoints() })));
  });
  app.use(limit('auto'));

  // three calls for one page; prices may be missing
  app.get('/users/:id/basket', async (req, res) => {
    const rules = rulesOf(req);
    const [user, order] = await Promise.all([
      users.get<{ name: string }>(`/users/${req.params.id}`, rules),
      orders.get<{ items: string[] }>(`/orders/of/${req.params.id}`, rules),
    ]);
    const price = await prices
      .get<{ total: number }>('/total', { ...rules, params: { items: order.data.items.join() } })
      .catch(() => undefined);
    res.json({
      name: user.data.name,
      items: order.data.items,
      total: price?.data.total ?? null,
    });
  });

  // a POST: moves on after a refusal or a closed port, and is never sent twice
  app.post('/orders', express.json(), async (req, res) => {
    const made = await orders.post<unknown>('/orders', req.body, rulesOf(req));
    res.status(made.status).json(made.data);
  });

  app.use(answerFor);
  return {
    app,
    close() {
      for (const channel of channels) channel.close();
    },
  };
}

/** What a caller's wishes mean for the calls made on its behalf: its deadline, and that it may hang up. */
function rulesOf(req: Request) {
  return { carriedTimeoutMs: timeLeftOf(req), signal: signalOf(req) };
}

/** 502 or 504 with a code: `status` is on the errors already. */
const answerFor: ErrorRequestHandler = (
  error: { status?: number; code?: string },
  req,
  res,
  next,
) => {
  if (res.headersSent || signalOf(req).aborted) next(error);
  else res.status(error.status ?? 500).json({ code: error.code ?? 'ERR_INTERNAL' });
};
