// A process with one Express service: `service.ts WORKLOAD PROTECTION PORT`. Tells its parent where it listens, and how its guard stands.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createGuard } from '@elimit/core';
import { limit } from '@elimit/express';
import { status } from '@elimit/status';
import express, { json } from 'express';
import { createHandlers, requestFor, type Workload } from '../http/handlers.js';
import type { Protection, ServiceMessage } from './service-message.js';

const TELL_MS = 250;

async function serve(workload: Workload, protection: Protection, port: number): Promise<void> {
  const app = express();
  app.use('/elimit', status());
  const { method, path } = requestFor(workload);
  if (protection !== 'bare') {
    const guard = createGuard({ limit: protection, name: `${method} ${path}` });
    app.use(limit(guard));
    setInterval(() => tell({ guard: guard.snapshot() }), TELL_MS).unref();
  }
  app.use(json());
  app[method === 'GET' ? 'get' : 'post'](path, createHandlers()[workload]);
  // a backlog as long as the system allows: what does not fit is lost before anyone can count it
  const server = app.listen(port, '127.0.0.1', 4096);
  await once(server, 'listening');
  tell({ port: (server.address() as AddressInfo).port });
}

function tell(message: ServiceMessage): void {
  if (process.connected) process.send?.(message);
}

process.on('disconnect', () => process.exit());
const [workload, protection, port] = process.argv.slice(2) as [Workload, Protection, string];
await serve(workload, protection, Number(port));
