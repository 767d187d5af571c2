import { existsSync } from 'node:fs';
import { createGuard, createRegistry } from '@elimit/core';
import { status } from '@elimit/status';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Browser, chromium, type Page } from 'playwright-core';
import { listen, type Running } from './support.js';

// scripts that run in the page are texts: the browser's globals are none of this program's
const executablePath = [process.env.ELIMIT_CHROMIUM, '/usr/bin/chromium'].find(
  (path) => path !== undefined && existsSync(path),
);
if (executablePath === undefined)
  console.warn('skipped: browser tests: no Chromium on this machine');
const inABrowser = executablePath === undefined ? describe.skip : describe;

/** Keeps a headless Chromium to itself: it looks nothing up and phones nowhere. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

inABrowser('status pages in a real browser', () => {
  const registry = createRegistry();
  const guard = createGuard({ limit: 5, name: 'GET /search', registry });
  const mischief = createGuard({ limit: 1, name: '<img src=x onerror="window.hit=1">', registry });
  const pages = status({ registry, allowChanges: true });
  const errors: string[] = [];
  let server: Running;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    server = await listen((req, res) => pages(req, res));
    browser = await chromium.launch({ executablePath: executablePath as string, args: QUIET });
    page = await browser.newPage();
    page.setDefaultTimeout(50_000);
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(String(error)));
  }, 60_000);

  afterAll(async () => {
    await browser.close();
    pages.close();
    await server.close();
  });

  it('moves its numbers under load, without a reload', async () => {
    await page.goto(`${server.url}/status`);
    const inflight = page.locator('[data-value="guard:GET /search:inflight"]');
    expect(await inflight.textContent()).toBe('0');
    const entries = [guard.tryAcquire(), guard.tryAcquire(), guard.tryAcquire()];
    await page.locator('[data-value="guard:GET /search:inflight"]', { hasText: /^3$/ }).waitFor();
    for (const entry of entries) if (entry.admitted) entry.release('success');
    await page
      .locator('[data-path="guard:GET /search:inflight"]:not([d=""])')
      .waitFor({ state: 'attached' });
  });

  it('takes in a guard that came later', async () => {
    await page.goto(`${server.url}/status`);
    const late = createGuard({ limit: 1, name: 'late', registry });
    await page.waitForSelector('[data-value="guard:late:inflight"]');
    expect(late.inflight).toBe(0);
  });

  it('changes a flag, which takes effect', async () => {
    await page.goto(`${server.url}/flags`);
    const input = page.getByLabel('limit of GET /search');
    await input.fill('9');
    await input.press('Enter');
    await page.getByText('saved', { exact: true }).waitFor();
    expect(guard.maxConcurrency).toBe(9);
    await input.fill('0');
    await input.press('Enter');
    await page.getByText(/not saved: .*would admit nothing/).waitFor();
    expect(guard.maxConcurrency).toBe(9);
    // the refusal is a 400, which a browser writes to its console
    expect(errors.splice(0).filter((text) => !text.includes('400'))).toEqual([]);
  });

  it('runs nothing that a name brings', async () => {
    await page.goto(`${server.url}/status`);
    expect(await page.getByText('<img src=x onerror="window.hit=1">').count()).toBe(1);
    expect(await page.evaluate("'hit' in window")).toBe(false);
    expect(mischief.inflight).toBe(0);
  });

  it('is whole without scripts', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const plain = await context.newPage();
    await plain.goto(`${server.url}/status`);
    expect(await plain.locator('article').count()).toBeGreaterThanOrEqual(2);
    expect(await plain.getByRole('navigation').count()).toBe(1);
    await context.close();
  });

  it('fits a phone, in the dark too', async () => {
    const context = await browser.newContext({
      viewport: { width: 360, height: 740 },
      colorScheme: 'dark',
    });
    const phone = await context.newPage();
    for (const path of ['/status', '/flags', '/connections']) {
      await phone.goto(`${server.url}${path}`);
      const wide = await phone.evaluate<number>('document.documentElement.scrollWidth');
      expect(wide).toBeLessThanOrEqual(360);
    }
    await context.close();
  });

  it('wrote no error to the console', () => {
    expect(errors).toEqual([]);
  });
});
