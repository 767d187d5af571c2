// Draws the pictures of the docs: a real service under a real load, seen by a real browser.
// node --conditions=@elimit/source --import tsx packages/bench/src/status/screenshots.ts
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createChannel } from '@elimit/client';
import { createCircuitBreaker, createGuard, createRateLimiter } from '@elimit/core';
import { limit } from '@elimit/express';
import { status } from '@elimit/status';
import express from 'express';
import { chromium } from 'playwright-core';
import { createHandlers } from '../http/handlers.js';
import { offerLoad } from '../http/load.js';

const executablePath = [process.env.ELIMIT_CHROMIUM, '/usr/bin/chromium'].find(
  (path) => path !== undefined && existsSync(path),
);
if (executablePath === undefined) {
  console.log('skipped: screenshots: no Chromium on this machine');
  process.exit(0);
}
const folder = new URL('../../../../docs/img/', import.meta.url);
const LOAD_S = 40;

const app = express();
const pages = status({ allowChanges: true });
app.use('/elimit', pages);
const handlers = createHandlers();
app.get('/search', limit(createGuard({ limit: 'auto', name: 'GET /search' })), handlers.async);
app.get(
  '/report',
  limit(createGuard({ limit: { timeoutMs: 300, maxConcurrency: 50 }, name: 'GET /report' })),
  handlers.mixed,
);
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const url = `http://127.0.0.1:${port}`;

// something for every kind of card and row
const perUser = createRateLimiter({ rate: 100, burst: 200, name: 'per user' });
const billing = createCircuitBreaker({ name: 'billing', minCalls: 5 });
const channel = createChannel({ nodes: [url, 'http://127.0.0.1:9'] });
const ticks = setInterval(() => {
  for (let i = 0; i < 30; i++) perUser.tryTake(1, `user ${i % 5}`);
  const broken = Math.random() < 0.5;
  billing.execute(() => (broken ? Promise.reject(new Error('503')) : 'ok')).catch(() => undefined);
  channel
    .execute(async ({ endpoint, signal }) =>
      (await fetch(new URL('/search', endpoint.url), { signal })).text(),
    )
    .catch(() => undefined);
}, 50);

const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
});
try {
  const loads = [
    offerLoad({ port, client: 'hangUp', rate: 900, durationMs: LOAD_S * 1000, path: '/search' }),
    offerLoad({ port, client: 'hangUp', rate: 150, durationMs: LOAD_S * 1000, path: '/report' }),
  ];
  await new Promise((resolve) => setTimeout(resolve, (LOAD_S - 5) * 1000));
  const shots = [
    { path: 'status', file: 'status.png', dark: false, width: 1100 },
    { path: 'status', file: 'status-dark-phone.png', dark: true, width: 390 },
    { path: 'connections', file: 'connections.png', dark: false, width: 1100 },
    { path: 'flags', file: 'flags.png', dark: false, width: 1100 },
  ];
  for (const { path, file, dark, width } of shots) {
    const context = await browser.newContext({
      viewport: { width, height: 720 },
      colorScheme: dark ? 'dark' : 'light',
    });
    const page = await context.newPage();
    await page.goto(`${url}/elimit/${path}`);
    await page.screenshot({ path: fileURLToPath(new URL(file, folder)) });
    console.log(`docs/img/${file}`);
    await context.close();
  }
  await Promise.all(loads);
} finally {
  clearInterval(ticks);
  await browser.close();
  channel.close();
  pages.close();
  server.close();
  server.closeAllConnections();
}
