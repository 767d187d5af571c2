import { Worker } from 'node:worker_threads';
import { type Channel, createChannel } from '@elimit/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { httpTry } from './support/http-try.js';

const server = new Worker(
  `const server = require('node:http').createServer((request, response) => response.end('ok'));
   server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port));`,
  { eval: true },
);
let port: number;
let channel: Channel;

beforeAll(async () => {
  port = await new Promise<number>((resolve) => {
    server.once('message', resolve);
  });
});
afterAll(() => server.terminate());
beforeEach(() => {
  channel = createChannel({
    nodes: [`http://127.0.0.1:${port}`],
    timeoutMs: 300,
    connectTimeoutMs: 100,
    connectionGroup: 'patience',
  });
});
afterEach(() => channel.close());

/** Keeps the loop from looking at anything. */
function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

describe('a pause of our own loop', () => {
  it('is no connect timeout: the connection stood long before we looked', async () => {
    const call = channel.execute(httpTry(), { maxRetries: 0, timeoutMs: 10_000 });
    block(400);
    expect((await call).status).toBe(200);
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, calls: 1 });
  });

  it('is no timeout: the answer was there long before we looked', async () => {
    await channel.execute(httpTry(), { timeoutMs: 10_000 });
    const call = channel.execute(httpTry(), { maxRetries: 0 });
    await new Promise((resolve) => setImmediate(resolve)); // the request goes out
    block(1000);
    expect((await call).status).toBe(200);
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, calls: 2 });
  });
});
