import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGuard, type Guard, type MaxConcurrency, type Priority } from '@elimit/core';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { protect } from '../src/index.js';
import { RawClient, until } from './dispatch-server.js';

jest.setTimeout(120_000);

const CLASSES: readonly Priority[] = ['critical', 'default', 'sheddable'];
const STEPS = 300;
/** Of each class, in each step. */
const OFFERED = 2;
/** Calls that the service ends in each step: half of those that come. */
const ENDED = 3;

interface Tally {
  offered: number;
  answered: number;
  refused: number;
}

let server: Server;
const clients: RawClient[] = [];

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
});

/**
 * Twice what a service can do, on real sockets but without a clock: in each step requests come, all of them get as far as
 * they can, and the service ends the oldest ones.
 */
async function overload(limit: MaxConcurrency, dryRun: boolean) {
  const guard: Guard = createGuard({ limit, dryRun, registry: false });
  guard.observeLoop = () => undefined; // a test machine that stands still is not the overload meant here
  const running: ServerResponse[] = [];
  server = createServer((_req, res) => running.push(res));
  protect(server, {
    limit: guard,
    priority: (req) => req.url?.slice(1) as Priority,
  });
  server.listen(0, '127.0.0.1', 4096);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const tallies = Object.fromEntries(
    CLASSES.map((name) => [name, { offered: 0, answered: 0, refused: 0 }]),
  ) as Record<Priority, Tally>;
  const idle: RawClient[] = [];
  const asking: { client: RawClient; priority: Priority }[] = [];
  let ended = 0;
  const collect = (): void => {
    for (let i = asking.length - 1; i >= 0; i--) {
      const { client, priority } = asking[i] as (typeof asking)[number];
      const [status] = client.statuses;
      if (status === undefined) continue;
      tallies[priority][status === 200 ? 'answered' : 'refused']++;
      client.received = '';
      asking.splice(i, 1);
      idle.push(client);
    }
  };
  const settle = (): Promise<void> =>
    until(() => {
      collect();
      return asking.length === running.length;
    });

  for (let step = 0; step < STEPS; step++) {
    for (let i = 0; i < OFFERED * CLASSES.length; i++) {
      const priority = CLASSES[i % CLASSES.length] as Priority;
      let client = idle.pop();
      if (client === undefined) {
        client = await RawClient.to(port);
        clients.push(client);
      }
      tallies[priority].offered++;
      asking.push({ client, priority });
      client.get(`/${priority}`);
    }
    await settle();
    for (const res of running.splice(0, ENDED)) {
      ended++;
      res.end();
    }
    await settle();
  }
  const endedUnderLoad = ended;
  for (const res of running.splice(0)) res.end();
  await settle();
  return { guard, tallies, endedUnderLoad };
}

describe('under twice the load that a service can bear', () => {
  it('lower classes give way: critical calls get through, sheddable ones go first, and no slot stays empty', async () => {
    const { guard, tallies, endedUnderLoad } = await overload(20, false);
    const { critical, default: normal, sheddable } = tallies;
    expect(endedUnderLoad).toBe(STEPS * ENDED); // there was always a call to end
    for (const { offered, answered, refused } of [critical, normal, sheddable]) {
      expect(offered).toBe(STEPS * OFFERED);
      expect(answered + refused).toBe(offered);
    }
    // 600 critical calls for 900 places: all fit, but for those of the first steps, when nothing is known of classes
    expect(critical.refused).toBeLessThanOrEqual(6);
    expect(normal.answered).toBeGreaterThanOrEqual(150);
    expect(sheddable.answered).toBeLessThanOrEqual(100);
    expect(sheddable.refused).toBeGreaterThan(normal.refused);
    expect(guard.inflight).toBe(0);
  });

  it('a dry run refuses nobody, and counts those that it would have refused', async () => {
    const { guard, tallies } = await overload(20, true);
    for (const name of CLASSES) {
      expect(tallies[name]).toEqual({
        offered: STEPS * OFFERED,
        answered: STEPS * OFFERED,
        refused: 0,
      });
    }
    const { wouldReject, rejected, admitted, inflight } = guard.snapshot();
    expect(admitted).toBe(STEPS * OFFERED * CLASSES.length);
    expect(Object.values(rejected)).toEqual([0, 0, 0, 0, 0]);
    expect(inflight).toBe(0);
    // 1800 came, 900 were ended under load, and 20 may run: at least 880 had no place
    expect(wouldReject).toBeGreaterThanOrEqual(880);
    expect(wouldReject).toBeLessThan(1800);
  });

  it('an adaptive limit is bounded above, whatever comes', async () => {
    const { guard, tallies } = await overload({ type: 'auto', maxConcurrency: 12 }, false);
    expect(guard.maxConcurrency).toBeLessThanOrEqual(12);
    const answered = CLASSES.map((name) => tallies[name].answered);
    const refused = CLASSES.map((name) => tallies[name].refused);
    // 900 ended under load and 12 may run: all others were refused
    expect(refused.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(888);
    expect(answered.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(450);
  });
});
