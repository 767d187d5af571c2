import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { limit } from '@elimit/express';
import express, { type Express } from 'express';

/** A service that is limited itself, and says how it is. */
function service(routes: (app: Express) => void): Express {
  const app = express();
  app.get('/healthz', (_req, res) => void res.send('well'));
  app.use(limit('auto'));
  routes(app);
  return app;
}

export const users = service((app) => {
  app.get('/users/:id', async (req, res) => {
    await sleep(10);
    res.json({ name: `user ${req.params.id}` });
  });
});

export const orders = service((app) => {
  app.get('/orders/of/:id', async (_req, res) => {
    await sleep(20);
    res.json({ items: ['tea', 'cup'] });
  });
  app.post('/orders', express.json(), (req, res) => {
    res.status(201).json({ order: req.body as unknown });
  });
});

export const prices = service((app) => {
  app.get('/total', async (req, res) => {
    await sleep(15);
    const { items } = req.query as { items: string };
    res.json({ total: items.split(',').length * 250 });
  });
});

export interface Listening {
  readonly server: Server;
  readonly url: string;
}

export async function listen(app: Express, port = 0): Promise<Listening> {
  const server = app.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
