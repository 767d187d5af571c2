import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Channel, type ChannelOptions, createChannel } from '@elimit/client';
import { ok, startTestServer, type TestServer } from '@elimit/testkit';
import { afterEach, beforeEach } from '@jest/globals';

let tests = 0;
const ends: (() => unknown)[] = [];
beforeEach(() => {
  tests += 1;
});
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** Called when the test has ended, the last one first. */
export function atEnd(end: () => unknown): void {
  ends.push(end);
}

/** A server that stops with the test. */
export async function start(handler = ok): Promise<TestServer> {
  const server = await startTestServer(handler);
  atEnd(() => server.stop());
  return server;
}

/** The URL of a server that answers before it has read the request, and never ends its answer. */
export async function startHasty(): Promise<string> {
  const server = http.createServer((incoming, response) => {
    incoming.on('error', () => {}).resume();
    response.writeHead(200).write('first');
  });
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A channel with endpoints of the test's own, patient, and without chance: it begins with the first node. Closed with the test. */
export function openChannel(options: ChannelOptions): Channel {
  const channel = createChannel({
    connectionGroup: `test ${tests}`,
    random: () => 0,
    timeoutMs: 5000,
    connectTimeoutMs: 1000,
    ...options,
  });
  atEnd(() => channel.close());
  return channel;
}
