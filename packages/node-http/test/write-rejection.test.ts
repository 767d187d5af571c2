import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Rejection } from '@elimit/core';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type WriteRejectionOptions, writeRejection } from '../src/index.js';
import { RawClient, until } from './dispatch-server.js';

jest.setTimeout(60_000);

const REJECTION: Rejection = {
  admitted: false,
  reason: 'concurrency',
  retryAfterMs: 1_250,
  name: 'app',
};

let server: Server;

async function listen(listener: RequestListener): Promise<RawClient> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return RawClient.to((server.address() as AddressInfo).port);
}

async function refusing(options?: WriteRejectionOptions): Promise<RawClient> {
  return listen((_req, res) => writeRejection(res, REJECTION, options));
}

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const head = (client: RawClient): string =>
  client.received.split('\r\n\r\n')[0]?.toLowerCase() ?? '';
const body = (client: RawClient): string => client.received.split('\r\n\r\n')[1] ?? '';

const post = (client: RawClient, length: number, sent: number, headers = ''): void => {
  client.socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n${headers}\r\n`);
  client.socket.write('x'.repeat(sent));
};

describe('the answer', () => {
  it('has the status, the headers and the ELIMIT body', async () => {
    const client = await refusing();
    client.get('/');
    await until(() => client.received.endsWith('}'));
    expect(head(client)).toContain('http/1.1 503 service unavailable');
    expect(head(client)).toContain('\r\nretry-after: 2\r\n'); // 1.25 s, rounded up
    expect(head(client)).toContain('\r\nx-bd-error-code: 2004\r\n');
    expect(head(client)).toContain('\r\ncontent-type: application/json; charset=utf-8\r\n');
    expect(JSON.parse(body(client))).toEqual({
      code: 'ELIMIT',
      errno: 2004,
      reason: 'concurrency',
      message: 'Too many requests are being served; try again shortly.',
      retryAfterMs: 1250,
    });
    expect(Object.keys(JSON.parse(body(client)) as object)).toEqual(
      'code errno reason message retryAfterMs'.split(' '),
    );
  });

  it('takes another status and another sentence, counted in bytes', async () => {
    const client = await refusing({ statusCode: 529, message: 'Später, „bitte“' });
    client.get('/');
    client.get('/');
    await until(() => client.statuses.length === 2);
    expect(client.statuses).toEqual([529, 529]);
    expect(Buffer.from(client.received, 'latin1').toString()).toContain('"Später, „bitte“"');
  });

  it('to a HEAD request has no body, and the connection goes on', async () => {
    const client = await refusing();
    client.socket.write('HEAD / HTTP/1.1\r\nhost: x\r\n\r\n');
    client.get('/');
    await until(() => client.received.endsWith('}'));
    expect(client.statuses).toEqual([503, 503]);
    expect(client.received.match(/"code"/g)).toHaveLength(1);
  });

  it('is not written over one that has begun', async () => {
    const client = await listen((_req, res) => {
      res.write('begun, ');
      writeRejection(res, REJECTION);
      res.end('ended');
      writeRejection(res, REJECTION);
    });
    client.get('/', 'connection: close\r\n');
    await once(client.socket, 'end');
    expect(client.statuses).toEqual([200]);
    expect(client.received).toContain('ended');
  });
});

describe('before the body is read', () => {
  it('a small body is dropped and the connection goes on', async () => {
    const client = await refusing();
    post(client, 60_000, 60_000);
    client.get('/');
    await until(() => client.statuses.length === 2);
    expect(head(client)).toContain('connection: keep-alive');
    expect(client.socket.destroyed).toBe(false);
  });

  it('a small body that is still coming is waited for', async () => {
    const client = await refusing();
    post(client, 10, 5);
    await until(() => client.statuses.length === 1);
    client.socket.write('yyyyy');
    client.get('/');
    await until(() => client.statuses.length === 2);
    expect(client.statuses).toEqual([503, 503]);
  });

  it.each([
    { it: 'a large body', request: 'content-length: 50000000' },
    { it: 'a body of unknown length', request: 'transfer-encoding: chunked' },
    { it: 'a body that asks leave', request: 'content-length: 10\r\nexpect: 100-continue' },
  ])('$it closes the connection, after the whole answer', async ({ request }) => {
    const client = await refusing();
    client.socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${request}\r\n\r\n`);
    await until(() => client.received.endsWith('}'));
    expect(client.received.toLowerCase()).toContain('connection: close');
    await once(client.socket, 'end'); // after a second at most, though we send nothing more
  });

  it('a client that sends all of a large body before it reads gets its answer without a reset', async () => {
    const client = await refusing();
    const errors: unknown[] = [];
    client.socket.on('error', (error) => errors.push(error));
    client.socket.pause();
    const length = 5_000_000;
    post(client, length, length);
    await new Promise<void>((sent) => {
      client.socket.write('', () => sent());
    });
    client.socket.resume();
    await once(client.socket, 'end');
    expect(errors).toEqual([]);
    expect(client.statuses).toEqual([503]);
    expect(client.received.endsWith('}')).toBe(true);
  });
});
