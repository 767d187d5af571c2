import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createGuard } from '@elimit/core';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { dispatchSnapshot, type Protection, protect } from '../src/index.js';
import { dispatchedSince, RawClient, until } from './dispatch-server.js';

jest.setTimeout(60_000);

let server: Server;
let port = 0;

async function listen(listener: RequestListener): Promise<void> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
}

/** A server whose requests wait until they are let go. */
async function holding(): Promise<{ held: ServerResponse[] }> {
  const held: ServerResponse[] = [];
  await listen((_req, res) => held.push(res));
  return { held };
}

function inflight(protection: Protection): number {
  return protection.guard?.inflight ?? Number.NaN;
}

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

describe('protect', () => {
  it('refuses what is over the limit before any listener hears of it', async () => {
    const { held } = await holding();
    const protection = protect(server, { limit: 2, registry: false });
    const client = [1, 2, 3].map(() => new RawClient(port));
    for (const each of client) each.get('/');
    await until(() => held.length === 2 && client.some(({ statuses }) => statuses.length === 1));
    expect(client.flatMap(({ statuses }) => statuses)).toEqual([503]);
    expect(client.map(({ received }) => received).join('')).toContain('"reason":"concurrency"');
    for (const res of held) res.end();
    await until(() => inflight(protection) === 0);
    expect(held).toHaveLength(2);
    expect(protection.guard?.name).toBe('server');
  });

  it('lets requests it is told to skip pass at any load', async () => {
    await listen((req, res) => {
      if (req.url === '/healthz') res.end('fine');
    });
    protect(server, { limit: 1, registry: false, skip: (req) => req.url === '/healthz' });
    const slow = new RawClient(port);
    slow.get('/slow');
    const health = new RawClient(port);
    health.get('/healthz');
    await until(() => health.received.endsWith('fine'));
    slow.get('/healthz'); // pipelined behind its own slow one: not answered
    health.get('/other');
    await until(() => health.statuses.length === 2);
    expect(health.statuses).toEqual([200, 503]);
  });

  it('takes a guard made before, and a handler of its own for refusals', async () => {
    await holding();
    const guard = createGuard({ limit: 1, registry: false });
    const protection = protect(server, {
      limit: guard,
      handler: (_req, res, rejection) => res.writeHead(418).end(rejection.reason),
    });
    expect(protection.guard).toBe(guard);
    const client = [1, 2].map(() => new RawClient(port));
    for (const each of client) each.get('/');
    await until(() => client.some(({ received }) => received.includes('concurrency')));
    expect(client.flatMap(({ statuses }) => statuses)).toEqual([418]);
  });

  it('starts handlers from the dispatch queue', async () => {
    await listen((_req, res) => res.end());
    protect(server, { limit: 1_000, registry: false });
    const before = dispatchSnapshot();
    const client = await Promise.all(Array.from({ length: 50 }, () => RawClient.to(port)));
    for (const each of client) each.get('/');
    await until(() => client.every(({ statuses }) => statuses.length === 1));
    expect(dispatchedSince(before).queued).toBeGreaterThanOrEqual(25);
  });

  it('refuses a passed deadline', async () => {
    const { held } = await holding();
    protect(server, { limit: 10, registry: false });
    const client = new RawClient(port);
    client.get('/', 'x-request-timeout-ms: 0\r\n');
    await until(() => client.statuses.length === 1);
    expect(client.received).toContain('"reason":"deadline"');
    expect(held).toEqual([]);
  });

  it('does not touch upgrades', async () => {
    await holding();
    server.on('upgrade', (_req, socket) =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\nhi'),
    );
    protect(server, { limit: 1, registry: false });
    const client = new RawClient(port);
    client.get('/', 'connection: upgrade\r\nupgrade: x\r\n');
    await until(() => client.received.endsWith('hi'));
    expect(client.statuses).toEqual([101]);
  });

  it('once closed lets everything through, and leaves the server as it was', async () => {
    const { held } = await holding();
    const emit = Object.getOwnPropertyDescriptor(server, 'emit');
    const protection = protect(server, { limit: 1, registry: false });
    protection.close();
    protection.close();
    expect(Object.getOwnPropertyDescriptor(server, 'emit')).toEqual(emit);
    expect(server.listenerCount('checkContinue')).toBe(0);
    for (let i = 0; i < 5; i++) new RawClient(port).get('/');
    await until(() => held.length === 5);
  });

  it('leaves alone what somebody else has put on top since', async () => {
    const { held } = await holding();
    const protection = protect(server, { limit: 1, registry: false });
    const seen: unknown[] = [];
    const under = server.emit.bind(server) as (...args: unknown[]) => boolean;
    server.emit = ((...args: unknown[]) => {
      seen.push(args[0]);
      return under(...args);
    }) as Server['emit'];
    protection.close();
    for (let i = 0; i < 3; i++) new RawClient(port).get('/');
    await until(() => held.length === 3);
    expect(seen.filter((event) => event === 'request')).toHaveLength(3);
  });

  it('refuses bad options at once', async () => {
    await holding();
    expect(() => protect(server, { limit: 0 })).toThrow(RangeError);
    expect(() => protect(server, { limt: 5 } as object)).toThrow(TypeError);
    expect(Object.hasOwn(server, 'emit')).toBe(false);
    expect(server.listenerCount('checkContinue')).toBe(0);
  });
});

async function expecting(): Promise<{ said: string[]; answer: string }> {
  const said: string[] = [];
  const req = request({
    port,
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': 4 },
  });
  req.on('continue', () => {
    said.push('continue');
    req.end('body');
  });
  req.flushHeaders();
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  said.push(String(res.statusCode));
  const answer = await text(res);
  req.destroy();
  return { said, answer };
}
const echo: RequestListener = (req, res) => void req.pipe(res);

describe('protect and Expect: 100-continue', () => {
  it('an admitted client gets its leave', async () => {
    await listen(echo);
    const protection = protect(server, { limit: 2, registry: false });
    expect(await expecting()).toEqual({ said: ['continue', '200'], answer: 'body' });
    await until(() => inflight(protection) === 0);
    expect(protection.guard?.snapshot().admitted).toBe(1);
  });

  it('with two protections too', async () => {
    await listen(echo);
    protect(server, { limit: 2, registry: false });
    protect(server, { limit: 2, registry: false });
    expect((await expecting()).said).toEqual(['continue', '200']);
  });

  it('a refused one is not asked for its body', async () => {
    await holding();
    const protection = protect(server, { limit: 1, registry: false });
    new RawClient(port).get('/');
    await until(() => inflight(protection) === 1);
    const { said, answer } = await expecting();
    expect(said).toEqual(['503']);
    expect(JSON.parse(answer)).toMatchObject({ code: 'ELIMIT' });
  });

  it('a listener for it decides for those that are admitted', async () => {
    await listen(echo);
    server.on('checkContinue', (_req: IncomingMessage, res: ServerResponse) => {
      res.writeHead(417).end();
    });
    protect(server, { limit: 1, registry: false });
    expect((await expecting()).said).toEqual(['417']);
  });
});
