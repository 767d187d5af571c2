// The entry of the process that is put under load: every workload, in Express, behind one arm.
// Arguments: the arm, and the limit for those that have one. It says its port, then answers every message with a reading.
import type { AddressInfo } from 'node:net';
import { createGuard, type Guard, type GuardSnapshot, type MaxConcurrency } from '@elimit/core';
import { limit } from '@elimit/express';
import { type DispatchSnapshot, dispatchSnapshot, protect } from '@elimit/node-http';
import express from 'express';
import { createHandlers, WORKLOADS } from './handlers.js';

/** What stands in front of the handlers. */
export const ARMS = ['none', 'limit', 'limitWithoutDispatch', 'protect'] as const;
export type Arm = (typeof ARMS)[number];

/** A look into the loaded process. */
export interface Reading {
  readonly dispatch: DispatchSnapshot;
  readonly guard: GuardSnapshot;
  /** CPU time used so far, in seconds. */
  readonly cpuSeconds: number;
  readonly uptimeSeconds: number;
}

const [arm = 'none', value = 'auto'] = process.argv.slice(2) as [Arm?, string?];
const guard: Guard = createGuard({ limit: value as MaxConcurrency, name: arm });

const app = express();
if (arm === 'limit') app.use(limit(guard));
if (arm === 'limitWithoutDispatch') app.use(limit(guard, { dispatch: false }));
const handlers = createHandlers();
for (const workload of WORKLOADS) {
  if (workload === 'post') app.post('/post', express.json(), handlers.post);
  else app.get(`/${workload}`, handlers[workload]);
}

const server = app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
if (arm === 'protect') protect(server, { limit: guard });

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  const reading: Reading = {
    dispatch: dispatchSnapshot(),
    guard: guard.snapshot(),
    cpuSeconds: (user + system) / 1e6,
    uptimeSeconds: process.uptime(),
  };
  process.send?.(reading);
});
process.on('disconnect', () => process.exit());
