import { once } from 'node:events';
import { RawClient } from '@elimit/testkit';
import { afterEach, expect, it } from '@jest/globals';
import request from 'supertest';
import { startExample } from '../../../packages/bench/src/http/example.js';
import { createApp, createLimits } from '../src/app.js';

let stop = (): void => {};
afterEach(() => stop());

it('starts by one command, and serves', async () => {
  const { url, stop: end } = await startExample(import.meta.url);
  stop = end;
  const health = await request(url).get('/healthz');
  expect(health.text).toBe('well');
  await request(url).get('/search?q=a').expect(200, { found: 'a' });
  await request(url).get('/thumbnail/7').expect(200, { id: '7' });
  await request(url)
    .post('/orders')
    .send({ of: 'tea' })
    .expect(201, { order: { of: 'tea' } });
}, 30_000);

it('refuses a third report, lets go of two that nobody waits for, and knows its limits', async () => {
  const guards = createLimits();
  const server = createApp(guards).listen(0, '127.0.0.1');
  stop = () => {
    server.close();
    server.closeAllConnections();
  };
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const report = guards.guardOf('GET /report');
  const clients = [await RawClient.open(port), await RawClient.open(port)];
  for (const client of clients) client.request('GET /report');
  while (report.inflight < 2) await new Promise((resolve) => setTimeout(resolve, 2));
  const refused = await request(server).get('/report').expect(503);
  expect(refused.body).toMatchObject({ code: 'ELIMIT', errno: 2004, reason: 'concurrency' });
  for (const client of clients) client.destroy();
  while (report.inflight > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  expect(report.snapshot().outcomes.abandoned).toBe(2);
  const limits = await request(server).get('/limits').expect(200);
  expect((limits.body as { name: string }[]).map(({ name }) => name)).toEqual([
    'server',
    'GET /search',
    'GET /report',
  ]);
});
