// The entry of the process that is put under load: every workload behind one arm, which is the argument.
// It says its port, then answers every message with a reading.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { GuardSnapshot } from '@elimit/core';
import { type DispatchSnapshot, dispatchSnapshot } from '@elimit/node-http';
import { type Arm, startArm } from './arms.js';

/** A look into the loaded process. */
export interface Reading {
  readonly dispatch: DispatchSnapshot;
  readonly guard: GuardSnapshot | null;
  /** CPU time used so far, in seconds. */
  readonly cpuSeconds: number;
  readonly uptimeSeconds: number;
}

const { server, guard } = await startArm(process.argv[2] as Arm);
if (!server.listening) await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  const reading: Reading = {
    dispatch: dispatchSnapshot(),
    guard: guard?.snapshot() ?? null,
    cpuSeconds: (user + system) / 1e6,
    uptimeSeconds: process.uptime(),
  };
  process.send?.(reading);
});
process.on('disconnect', () => process.exit());
