import { connect } from 'node:net';
import { createRegistry } from '@elimit/core';
import { status } from '@elimit/status';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, expect, it } from '@jest/globals';
import { ask, listen } from '../support.js';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of clean.splice(0).toReversed()) await undo();
});

async function serve() {
  const pages = status({ timers: new VirtualClock(), registry: createRegistry() });
  const { port, close } = await listen((req, res) => pages(req, res));
  clean.push(() => pages.close(), close);
  return { port, pages };
}

it('the live feed ends its answer to HEAD, and the connection goes on', async () => {
  const { port } = await serve();
  const socket = connect(port, '127.0.0.1');
  socket.write('HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n');
  socket.write('GET /overloaded HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
  expect(text).toContain('content-type: text/event-stream');
  expect(text).toContain('"overloaded": false');
});

it('the live feed takes nobody any more once the pages are closed', async () => {
  const { port, pages } = await serve();
  pages.close();
  expect((await ask(port, '/events')).status).toBe(503);
});
