import { afterAll, beforeAll, expect, it } from '@jest/globals';
import request from 'supertest';
import {
  admittedAtRest,
  type StartedExample,
  startExample,
  twiceTheRate,
} from '../../../packages/bench/src/http/example.js';

let app: StartedExample;
beforeAll(async () => {
  app = await startExample(import.meta.url);
}, 60_000);
afterAll(() => app.stop());

it('serves', async () => {
  expect((await request(app.url).get('/healthz')).text).toBe('well');
  await request(app.url).get('/search?q=a').expect(200, { found: 'a' });
  await request(app.url).get('/thumbnail/7').expect(200, { id: '7' });
  await request(app.url).get('/mail').expect(200, { sent: true });
}, 20_000);

it('serves half of what it can at least under twice that, and lets next to nobody wait in vain', async () => {
  const { served, inVain, load } = await twiceTheRate(app.url, '/thumbnail/1');
  expect(served).toBeGreaterThan(0.5);
  expect(inVain).toBeLessThan(0.05);
  expect(load.refused).toBeGreaterThan(0);
  // it is there, and well, when the load has gone
  expect((await request(app.url).get('/healthz')).text).toBe('well');
  expect(await admittedAtRest(app.url)).toBeGreaterThanOrEqual(load.inTime);
}, 40_000);
