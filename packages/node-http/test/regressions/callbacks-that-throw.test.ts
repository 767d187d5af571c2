import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRateLimiter } from '@elimit/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type ProtectOptions, protect, RequestRateLimit } from '../../src/index.js';

let server: Server;

async function listen(): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const boom = (): never => {
  throw new Error('a callback’s own fault');
};

describe('a callback of protect that throws', () => {
  it.each<{ it: string; options: ProtectOptions }>([
    { it: 'skip', options: { skip: boom } },
    { it: 'priority', options: { priority: boom } },
  ])('$it: that request gets a 500, and the process lives', async ({ options }) => {
    server = createServer((_req, res) => res.end('ok'));
    const { guard, close } = protect(server, { limit: 5, registry: false, ...options });
    const url = await listen();
    expect((await fetch(url)).status).toBe(500);
    expect(guard?.snapshot()).toMatchObject({ inflight: 0, admitted: 0 });
    close();
    expect((await fetch(url)).status).toBe(200);
  });

  it('but what the server’s own listener throws is not swallowed', async () => {
    server = createServer((_req, res) => {
      res.end('ok');
      boom();
    });
    const seen: string[] = [];
    protect(server, { limit: 5, registry: false, dispatch: false });
    const emit = server.emit.bind(server) as (...args: unknown[]) => boolean;
    server.emit = ((...args: unknown[]) => {
      try {
        return emit(...args);
      } catch (error) {
        seen.push((error as Error).message);
        return true;
      }
    }) as Server['emit'];
    expect(await (await fetch(await listen())).text()).toBe('ok');
    expect(seen).toEqual(['a callback’s own fault']);
  });
});

it('a requestWasSuccessful that throws gives nothing back, and the process lives', async () => {
  const limiter = createRateLimiter({ limit: 3, windowMs: 60_000, registry: false });
  const limited = new RequestRateLimit<[IncomingMessage, ServerResponse]>(
    { limiter, skipSuccessfulRequests: true, requestWasSuccessful: boom },
    { addressOf: () => '10.0.0.1' },
  );
  server = createServer((req, res) => {
    limited.handle(req, res, () => res.end('ok'), req, res);
  });
  const url = await listen();
  const left: (string | null)[] = [];
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(url);
    await answer.text();
    left.push(answer.headers.get('ratelimit'));
  }
  expect(left.map((header) => /;r=(\d)/.exec(header ?? '')?.[1])).toEqual(['2', '1']);
});

it('an onEvent of rateLimit that throws fails no request', async () => {
  let told = 0;
  const limited = new RequestRateLimit<[IncomingMessage, ServerResponse]>(
    {
      limit: 3,
      registry: false,
      onEvent: () => {
        told++;
        boom();
      },
    },
    { addressOf: () => '10.0.0.1' },
  );
  server = createServer((req, res) => {
    const end = (error?: unknown): void => void res.end(error === undefined ? 'ok' : 'failed');
    limited.handle(req, res, () => limited.handle(req, res, end, req, res), req, res);
  });
  expect(await (await fetch(await listen())).text()).toBe('ok');
  expect(told).toBe(1); // it stands twice in the way
});
