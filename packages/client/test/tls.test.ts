import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type Channel, type ChannelOptions, createChannel } from '@elimit/client';
import { testCertificate } from '@elimit/testkit';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { httpTry } from './support/http-try.js';

const { cert, key } = testCertificate;

let server: https.Server;
let port: number;
let names: unknown[];
let paths: string[];
const channels: Channel[] = [];

beforeEach(async () => {
  names = [];
  paths = [];
  server = https.createServer({ cert, key }, (request, response) => {
    names.push((request.socket as TLSSocket & { servername?: unknown }).servername);
    paths.push(request.url ?? '');
    response.end(request.headers.host);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  port = (server.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const channel of channels.splice(0)) channel.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function channelTo(options: ChannelOptions): Channel {
  const channel = createChannel({ timeoutMs: 5000, connectTimeoutMs: 1000, ...options });
  channels.push(channel);
  return channel;
}

describe('https nodes', () => {
  it('are checked against the given certificates, and not trusted without', async () => {
    const url = `https://127.0.0.1:${port}`;
    const trusting = channelTo({ nodes: [url], tls: { ca: cert } });
    expect((await trusting.execute(httpTry())).body).toBe(`127.0.0.1:${port}`);
    const strict = channelTo({ nodes: [url] });
    await expect(strict.execute(httpTry())).rejects.toMatchObject({
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    });
    // two endpoints: the certificates belong to the key
    expect(trusting.endpoints()[0]?.name).not.toBe(strict.endpoints()[0]?.name);
    expect(trusting.endpoints()[0]?.name).toMatch(/^https:\/\/127\.0\.0\.1:\d+ tls=[0-9a-f]{12}$/);
  });

  it('get `host` as Host and as TLS server name', async () => {
    const channel = channelTo({
      nodes: [{ url: `https://127.0.0.1:${port}`, host: 'search.test:443' }],
      tls: { ca: cert },
    });
    expect((await channel.execute(httpTry())).body).toBe('search.test:443');
    expect(names).toEqual(['search.test']);
  });

  it('are health-checked over TLS where a path is given', async () => {
    const channel = channelTo({
      nodes: [{ url: `https://127.0.0.1:${port}`, host: 'search.test' }],
      tls: { ca: cert },
      healthCheck: { intervalMs: 1000, timeoutMs: 1000, path: '/healthz' },
    });
    const refused = Object.assign(new Error(), { code: 'ECONNREFUSED' });
    await channel.execute(() => Promise.reject(refused), { maxRetries: 0 }).catch(() => {});
    expect(channel.endpoints()[0]?.state).toBe('open');
    const endMs = performance.now() + 4000;
    while (channel.endpoints()[0]?.state !== 'halfOpen' && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(channel.endpoints()[0]?.state).toBe('halfOpen');
    // one check, or more on a busy machine
    expect([...new Set(paths)]).toEqual(['/healthz']);
    expect([...new Set(names)]).toEqual(['search.test']);
  });
});
