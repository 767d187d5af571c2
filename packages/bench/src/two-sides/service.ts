// A process with one service: `service.ts {"slots":5,"workMs":40,"limit":"auto"}`. Says where it listens, then answers each message with its counts.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { breaker, createChannel } from '@elimit/axios';
import type { EndpointSnapshot, MaxConcurrency } from '@elimit/core';
import { createGuard, limit, timeLeftOf } from '@elimit/express';
import axios from 'axios';
import express, { type Express } from 'express';
import { Slots } from './slots.js';

export interface ServiceOptions {
  readonly slots: number;
  readonly workMs: number;
  /** None: bare. */
  readonly limit?: MaxConcurrency;
  /** Services behind this one: it asks them once for each of its own calls. */
  readonly behind?: readonly string[];
}

export interface ServiceOrder {
  /** From now on. */
  readonly workMs?: number;
}

export interface ServiceCounts {
  /** Requests that came in, refused ones included. */
  readonly hits: number;
  readonly served: number;
  readonly maxConcurrency: number | undefined;
  /** `x-request-timeout-ms` of the last requests, in their order. */
  readonly timeouts: readonly number[];
  /** How this service sees those behind it. */
  readonly endpoints: readonly EndpointSnapshot[];
}

const KEPT = 1000;

async function serve(options: ServiceOptions): Promise<void> {
  const slots = new Slots(options.slots, options.workMs);
  const guard =
    options.limit === undefined
      ? undefined
      : createGuard({ limit: options.limit, name: 'GET /work' });
  const channel =
    options.behind && createChannel({ name: 'behind', nodes: options.behind, timeoutMs: 2000 });
  const next = channel && breaker(axios.create(), channel);
  const seen = { hits: 0, served: 0, timeouts: [] as number[] };

  const app = express().set('env', 'test'); // else Express prints every error
  if (guard) app.use(limit(guard));
  app.get('/work', async (req, res) => {
    await slots.work();
    const carriedTimeoutMs = timeLeftOf(req);
    if (next) await next.get('/work', { carriedTimeoutMs });
    seen.served += 1;
    res.json({ left: carriedTimeoutMs ?? null });
  });
  const server = await listen(app);
  server.on('request', ({ headers }) => {
    seen.hits += 1;
    seen.timeouts.push(Number(headers['x-request-timeout-ms']));
    if (seen.timeouts.length > KEPT) seen.timeouts.shift();
  });

  process.on('message', ({ workMs }: ServiceOrder) => {
    if (workMs !== undefined) slots.workMs = workMs;
    tell({ ...seen, maxConcurrency: guard?.maxConcurrency, endpoints: channel?.endpoints() ?? [] });
  });
  process.on('disconnect', () => process.exit());
  tell({ port: (server.address() as AddressInfo).port });
}

async function listen(app: Express) {
  const server = app.listen(0, '127.0.0.1', 4096);
  await once(server, 'listening');
  return server;
}

function tell(message: ServiceCounts | { port: number }): void {
  if (process.connected) process.send?.(message);
}

await serve(JSON.parse(process.argv[2] as string) as ServiceOptions);
