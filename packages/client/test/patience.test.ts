import { Worker } from 'node:worker_threads';
import { createChannel } from '@elimit/client';
import { expect, it } from '@jest/globals';
import { httpTry } from './support/http-try.js';

it('does not blame a node for a pause of our own loop', async () => {
  const server = new Worker(
    `const server = require('node:http').createServer((request, response) => response.end('ok'));
     server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port));`,
    { eval: true },
  );
  const port = await new Promise<number>((resolve) => {
    server.once('message', resolve);
  });
  const channel = createChannel({
    nodes: [`http://127.0.0.1:${port}`],
    timeoutMs: 300,
    connectTimeoutMs: 100,
    connectionGroup: 'patience',
  });
  try {
    for (let i = 0; i < 3; i++) {
      const call = channel.execute(httpTry(), { maxRetries: 0 });
      // connected, and on the second round answered, long before we look
      await new Promise((resolve) => setTimeout(resolve, i * 5));
      const until = performance.now() + 250;
      while (performance.now() < until); // longer than the connect timeout
      expect((await call).status).toBe(200);
    }
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, calls: 3 });
  } finally {
    channel.close();
    await server.terminate();
  }
});
