import { randomBytes } from 'node:crypto';
import type http from 'node:http';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { breaker, type Channel } from '@elimit/axios';
import { eventually, status } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import axios, { type AxiosInstance, type AxiosRequestConfig } from 'axios';
import { openChannel, start } from '../../../client/test/support/opened.js';

function open(url: string): { http: AxiosInstance; channel: Channel } {
  const channel = openChannel({ nodes: [url] });
  return { http: breaker(axios.create(), channel), channel };
}

const mine = new Error('mine');
/** Takes nothing, like a client that has hung up. */
const sink = () =>
  new Writable({
    write(_chunk, _encoding, done) {
      done(mine);
    },
  });
/** Enough to unzip something of, and not all of it. */
const half = gzipSync(randomBytes(200_000)).subarray(0, 100_000);

describe.each([
  { it: 'plain', headers: {} },
  { it: 'zipped', headers: { 'content-encoding': 'gzip' } },
])('a $it stream', ({ headers }) => {
  it.each<{
    it: string;
    use: (data: http.IncomingMessage, cancel: () => void) => unknown;
  }>([
    { it: 'destroy()', use: (data) => data.destroy() },
    { it: 'destroy(error)', use: (data) => data.destroy(mine) },
    {
      it: 'an error that looks like a broken connection',
      use: (data) => data.destroy(Object.assign(new Error('other'), { code: 'ECONNRESET' })),
    },
    {
      it: 'a pipeline whose end fails',
      use: (data) => pipeline(data, sink()),
    },
    {
      it: 'a loop that throws',
      use: async (data) => {
        for await (const _ of data) throw mine;
      },
    },
    { it: 'a cancel', use: (_data, cancel) => cancel() },
  ])('that its reader ends by $it costs the node nothing', async ({ use }) => {
    const node = await start((_request, response) => {
      response.writeHead(200, headers).write(half);
    });
    const { http: client, channel } = open(node.url);
    const source = axios.CancelToken.source();
    const config = { responseType: 'stream', cancelToken: source.token } as const;
    const { data } = await client.get<http.IncomingMessage>('/', config);
    data.on('error', () => {});
    try {
      await use(data, () => source.cancel());
    } catch (error) {
      expect(error).toBe(mine);
    }
    await eventually(() => node.openConnections === 0, 'the connection closes');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0 });
  });

  it.each<{ it: string; end: (socket: http.IncomingMessage['socket']) => void }>([
    { it: 'by a reset', end: (socket) => socket.resetAndDestroy() },
    { it: 'by an early end', end: (socket) => socket.end() },
  ])('that breaks off $it costs it a failure', async ({ end }) => {
    const node = await start(({ socket }, response) => {
      response.writeHead(200, { ...headers, 'content-length': '200000' });
      response.write(half, () => setTimeout(() => end(socket), 20));
    });
    const { http: client, channel } = open(node.url);
    const { data } = await client.get<http.IncomingMessage>('/', { responseType: 'stream' });
    data.on('error', () => {}).resume();
    await eventually(() => channel.endpoints()[0]?.failures !== 0, 'it is counted');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });
});

describe('what the caller has done wrong costs the node nothing, and is not tried again', () => {
  it.each<{ it: string; config: AxiosRequestConfig; says: string }>([
    { it: 'a method', config: { method: 'B AD' }, says: 'valid HTTP' },
    {
      it: 'a body above maxBodyLength',
      config: { method: 'put', data: 'x'.repeat(100), maxBodyLength: 10 },
      says: 'maxBodyLength',
    },
    {
      it: 'a stream above maxBodyLength',
      config: { method: 'put', data: Readable.from(['x'.repeat(100)]), maxBodyLength: 10 },
      says: 'maxBodyLength',
    },
    {
      it: 'an answer above maxContentLength',
      config: { maxContentLength: 1 },
      says: 'maxContentLength',
    },
    { it: 'data that cannot be sent', config: { method: 'put', data: () => {} }, says: 'Data' },
    {
      it: 'a paramsSerializer that throws',
      config: {
        params: { a: 1 },
        paramsSerializer: () => {
          throw mine;
        },
      },
      says: 'mine',
    },
    {
      it: 'a stream to send that fails',
      config: {
        method: 'put',
        data: new Readable({
          read() {
            this.destroy(mine);
          },
        }),
      },
      says: 'mine',
    },
    {
      it: 'a beforeRedirect that throws',
      config: {
        url: '/moved',
        beforeRedirect: () => {
          throw mine;
        },
      },
      says: 'mine',
    },
  ])('$it', async ({ config, says }) => {
    const moved = status(302, { location: '/' });
    const node = await start((request, response) => {
      if (request.url === '/moved') moved(request, response);
      else response.end('answer');
    });
    const { http: client, channel } = open(node.url);
    await expect(client.request({ url: '/', ...config })).rejects.toThrow(says);
    expect(channel.endpoints()).toMatchObject([{ calls: 1, failures: 0, inflight: 0 }]);
  });
});
