import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { ConnectTimeoutError } from '@elimit/client';
import { startSilentHost, startTestServer } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent } from '../src/agent.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Accepts and says nothing. */
async function mute(): Promise<number> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function agentFor(protocol: string, connectTimeoutMs: number) {
  const told = { connected: 0 };
  const agent = createAgent(protocol, {
    connectTimeoutMs,
    tls: {},
    connected: () => {
      told.connected += 1;
    },
  });
  closers.push(() => agent.destroy());
  return { agent, told };
}

const errorOf = (request: http.ClientRequest) =>
  new Promise<Error>((resolve) => request.once('error', resolve));

describe('the connect timeout', () => {
  it.each(['http:', 'https:'])(
    'ends a connection that does not come about, over %s',
    async (protocol) => {
      const silent = await startSilentHost();
      closers.push(() => silent.close());
      const { agent, told } = agentFor(protocol, 60);
      const { get } = protocol === 'https:' ? https : http;
      const from = performance.now();
      const error = await errorOf(get({ host: '127.0.0.1', port: silent.port, agent }));
      expect(ConnectTimeoutError.is(error)).toBe(true);
      expect(error).toMatchObject({
        code: 'ERR_CONNECT_TIMEOUT',
        host: '127.0.0.1',
        connectTimeoutMs: 60,
      });
      expect(performance.now() - from).toBeGreaterThanOrEqual(59);
      expect(told.connected).toBe(0);
    },
  );

  it.each(['http:', 'https:'])('does not cover what comes after TCP, over %s', async (protocol) => {
    const port = await mute();
    const { agent, told } = agentFor(protocol, 30);
    const { get } = protocol === 'https:' ? https : http;
    const request = get({ host: '127.0.0.1', port, agent });
    const error = errorOf(request);
    setTimeout(() => request.destroy(new Error('waited long enough')), 120);
    expect((await error).message).toBe('waited long enough');
    expect(told.connected).toBe(1);
  });

  it('does not cover the look-up of the name', async () => {
    const server = await startTestServer();
    closers.push(() => server.stop());
    const { agent } = agentFor('http:', 40);
    const body = await new Promise((resolve, reject) => {
      http
        .get({
          host: 'slow.test',
          port: server.port,
          agent,
          lookup: (_name, _options, found) => {
            setTimeout(() => found(null, [{ address: '127.0.0.1', family: 4 }]), 100);
          },
        })
        .on('error', reject)
        .on('response', (response) => response.on('data', (chunk) => resolve(String(chunk))));
    });
    expect(body).toBe('ok');
  });

  it('leaves time for a second address when the first is dead', async () => {
    const silent = await startSilentHost();
    closers.push(() => silent.close());
    const { agent } = agentFor('http:', 300);
    // the live one listens on another loopback address, on the silent one's port
    const live = http.createServer((_request, response) => response.end('second'));
    await new Promise<void>((resolve) => {
      live.listen(silent.port, '127.0.0.2', resolve);
    });
    closers.push(() => live.close());
    const body = await new Promise((resolve, reject) => {
      http
        .get({
          host: 'two.test',
          port: silent.port,
          agent,
          lookup: (_name, _options, found) =>
            found(null, [
              { address: '127.0.0.1', family: 4 },
              { address: '127.0.0.2', family: 4 },
            ]),
        })
        .on('error', reject)
        .on('response', (response) => response.on('data', (chunk) => resolve(String(chunk))));
    });
    expect(body).toBe('second');
  });
});
