// The entry of the process that is put under load: every workload behind one arm, which is the argument.
// It says its ports, then answers every message with a reading.
import { once } from 'node:events';
import type { Server } from 'node:http';
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

/** Where the process listens. */
export interface Ports {
  readonly port: number;
  /** The same code behind a guard of its own. */
  readonly warmUpPort: number;
}

const arm = process.argv[2] as Arm;
const { server, guard } = await startArm(arm);
const warmUp = await startArm(arm, 'warmUp');
const ports: Ports = { port: await portOf(server), warmUpPort: await portOf(warmUp.server) };
process.send?.(ports);

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

async function portOf(listener: Server): Promise<number> {
  if (!listener.listening) await once(listener, 'listening');
  return (listener.address() as AddressInfo).port;
}
