import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import request from 'supertest';
import { offerLoad } from '../../../packages/bench/src/http/load.js';

let child: ChildProcess;
let url = '';

// by the one command that the README says
beforeAll(async () => {
  child = spawn('npm', ['start', '--silent'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, PORT: '0' },
    detached: true, // npm, its shell and node: to be ended as one
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [text] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(text))?.[0] as string;
}, 60_000);
afterAll(() => {
  process.kill(-(child.pid as number), 'SIGKILL');
});

it('serves', async () => {
  expect((await request(url).get('/healthz')).text).toBe('well');
  await request(url).get('/search?q=a').expect(200, { found: 'a' });
  await request(url).get('/thumbnail/7').expect(200, { id: '7' });
  await request(url).get('/mail').expect(200, { sent: true });
}, 20_000);

it('keeps answering under twice what it can do at best, and refuses the rest', async () => {
  // 5 ms of processor each: 200 a second is the most there can be, on a machine with nothing else to do
  const result = await offerLoad({
    port: Number(new URL(url).port),
    path: '/thumbnail/1',
    client: 'hangUp',
    rate: 400,
    warmUpMs: 500,
    durationMs: 2000,
    deadlineMs: 5000, // a figure would say more of the machine than of the example: this asks for answers at all
  });
  expect(result.inTime).toBeGreaterThan(0);
  expect(result.refused).toBeGreaterThan(0);
  // it is there, and well, when the load has gone
  expect((await request(url).get('/healthz')).text).toBe('well');
  for (;;) {
    const limits = await request(url).get('/limits').expect(200);
    const [server] = limits.body as { inflight: number; admitted: number }[];
    if (server?.inflight === 0) {
      expect(server.admitted).toBeGreaterThanOrEqual(result.inTime);
      return;
    }
  }
}, 40_000);
