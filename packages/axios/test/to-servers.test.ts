import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { breaker } from '@elimit/axios';
import { closedPort, hang, refuse, startTestServer, status } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import axios from 'axios';
import express from 'express';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A service that does nothing but ask another one, and lets Express answer for what goes wrong. */
async function front(behind: string, timeoutMs = 10_000): Promise<string> {
  const http = breaker(axios.create(), {
    nodes: [behind],
    timeoutMs,
    connectTimeoutMs: timeoutMs / 2,
    connectionGroup: behind,
  });
  const app = express().set('env', 'test'); // Express prints errors elsewhere
  app.get('/', async (_req, res) => {
    res.send((await http.get<string>('/')).data);
  });
  const server = app.listen(0, '127.0.0.1');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('what goes wrong behind an Express service', () => {
  it.each([
    { it: 'a node that is down', behind: () => closedPort(), want: 502 },
    { it: 'a node that fails', behind: () => served(status(500)), want: 502 },
    { it: 'a node that is unavailable', behind: () => served(status(503)), want: 502 },
    { it: 'a node that refuses with a mark', behind: () => served(refuse()), want: 502 },
    { it: 'a node that never answers', behind: () => served(hang), timeoutMs: 250, want: 504 },
    { it: 'a gateway that timed out itself', behind: () => served(status(504)), want: 504 },
    { it: 'a page that is not there', behind: () => served(status(404)), want: 404 },
  ])('$it: Express answers $want, without a mark', async ({ behind, timeoutMs, want }) => {
    const url = await front(await behind(), timeoutMs);
    const answer = await fetch(url);
    expect(answer.status).toBe(want);
    expect(answer.headers.get('x-bd-error-code')).toBeNull();
  });

  it('nobody left: Express answers 502, for a 503 would be asked of the next node', async () => {
    const url = await front(await closedPort());
    await fetch(url); // isolates it
    expect((await fetch(url)).status).toBe(502);
  });
});

async function served(handler: Parameters<typeof startTestServer>[0]): Promise<string> {
  const server = await startTestServer(handler);
  ends.push(() => server.stop());
  return server.url;
}
