import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createGuard, createRegistry, type ElimitEvent, type GuardSnapshot } from '@elimit/core';
import { type StatusOptions, status } from '@elimit/status';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import Koa from 'koa';
import { type Answer, ask, listen, type Running, running } from './support.js';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of clean.splice(0).toReversed()) await undo();
});

async function serve(options: StatusOptions = {}): Promise<Running & { clock: VirtualClock }> {
  const clock = new VirtualClock();
  const pages = status({ timers: clock, registry: createRegistry(), ...options });
  const server = await listen((req, res) =>
    pages(req, res, () => {
      res.end('mine');
    }),
  );
  clean.push(
    () => pages.close(),
    () => server.close(),
  );
  return { ...server, clock };
}

function guarded(name: string, limit = 2) {
  const registry = createRegistry();
  const clock = new VirtualClock();
  const guard = createGuard({ limit, name, clock, registry });
  return { registry, guard };
}

describe('status pages', () => {
  it('shows a guard, as a page and as JSON', async () => {
    const { registry, guard } = guarded('GET /a');
    guard.tryAcquire();
    const { port } = await serve({ registry });
    const page = await ask(port, '/status', { headers: { accept: 'text/html' } });
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.text).toContain('<span data-value="guard:GET /a:inflight">1</span>');
    for (const answer of [
      await ask(port, '/status.json'),
      await ask(port, '/status', { headers: { accept: 'application/json' } }),
    ]) {
      const { pid, sources } = JSON.parse(answer.text) as { pid: number; sources: GuardSnapshot[] };
      expect(pid).toBe(process.pid);
      expect(sources).toMatchObject([{ type: 'guard', name: 'GET /a', inflight: 1 }]);
    }
  });

  it('hands on what is not a page', async () => {
    const { port } = await serve();
    expect((await ask(port, '/statusx')).text).toBe('mine');
    expect((await ask(port, '/')).headers.location).toBe('/status');
  });

  it('answers 404 for the rest of a bare server that gives no next', async () => {
    const pages = status({ registry: createRegistry(), timers: new VirtualClock() });
    const server = await listen((req, res) => pages(req, res));
    clean.push(() => server.close());
    expect((await ask(server.port, '/else')).status).toBe(404);
  });

  it.each<{ it: string; headers: Record<string, string>; expected: number }>([
    { it: 'lets this machine in', headers: {}, expected: 200 },
    {
      it: 'refuses what a proxy forwards',
      headers: { 'x-forwarded-for': '1.2.3.4' },
      expected: 403,
    },
    { it: 'refuses RFC 7239 too', headers: { forwarded: 'for=1.2.3.4' }, expected: 403 },
  ])('$it', async ({ headers, expected }) => {
    const { port } = await serve();
    for (const path of ['/status', '/metrics', '/flags', '/connections.json']) {
      expect((await ask(port, path, { headers })).status).toBe(expected);
    }
  });

  it('lets in whom the user says', async () => {
    const { port } = await serve({
      access: (req) => Promise.resolve(req.headers.authorization === 'Bearer secret'),
    });
    expect((await ask(port, '/status')).status).toBe(403);
    const headers = { authorization: 'Bearer secret', 'x-forwarded-for': '1.2.3.4' };
    expect((await ask(port, '/status', { headers })).status).toBe(200);
  });

  it('passes an access function’s error on, and stays up', async () => {
    const pages = status({
      registry: createRegistry(),
      timers: new VirtualClock(),
      access: () => Promise.reject(new Error('no directory')),
    });
    const server = await listen((req, res) =>
      pages(req, res, (error) => {
        res.statusCode = 500;
        res.end((error as Error).message);
      }),
    );
    clean.push(() => server.close());
    expect(await ask(server.port, '/status')).toMatchObject({ status: 500, text: 'no directory' });
  });

  it('keeps a name from outside inert', async () => {
    const { registry, guard } = guarded('<img src=x onerror=alert(1)>"\'\n');
    const { port } = await serve({ registry });
    for (const path of ['/status', '/flags']) {
      const { text, headers } = await ask(port, path);
      expect(text).not.toContain('<img');
      expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;');
      expect(headers['content-security-policy']).toContain("default-src 'none'");
    }
    const { text } = await ask(port, '/metrics');
    expect(text).toContain(
      'elimit_guard_inflight{name="<img src=x onerror=alert(1)>\\"\'\\n"} 0\n',
    );
    expect(guard.inflight).toBe(0);
  });

  it('shows two hundred cards and says how many more there are', async () => {
    const registry = createRegistry();
    const guards = Array.from({ length: 203 }, (_, i) =>
      createGuard({ limit: 1, name: `g${i}`, registry }),
    );
    const { port } = await serve({ registry });
    const { text } = await ask(port, '/status');
    expect(text.match(/<article/g)).toHaveLength(200);
    expect(text).toContain('3 more are not shown');
    expect(guards).toHaveLength(203);
  });

  it('serves valid Prometheus text', async () => {
    const { registry, guard } = guarded('a');
    guard.tryAcquire();
    const { port } = await serve({ registry });
    const { text, headers } = await ask(port, '/metrics');
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    for (const line of text.trimEnd().split('\n')) {
      expect(line).toMatch(
        /^(# (HELP|TYPE) elimit_\w+ .+|elimit_\w+\{\w+="[^"]*"(,\w+="[^"]*")?\} [\d.e+-]+)$/,
      );
    }
    expect(text).toContain('elimit_guard_inflight{name="a"} 1\n');
  });

  it('draws five minutes and keeps no more', async () => {
    const { registry, guard } = guarded('a');
    const { port, clock } = await serve({ registry });
    guard.tryAcquire();
    clock.advanceMs(400_000);
    const { sources } = JSON.parse((await ask(port, '/status.json')).text) as {
      sources: { series: { inflight: number[] } }[];
    };
    expect(sources[0]?.series.inflight).toEqual(Array.from({ length: 300 }, () => 1));
    expect((await ask(port, '/status')).text).toMatch(/data-path="guard:a:inflight" d="M0\.0 /);
  });

  it('says 503 for readiness while most calls are refused, and 200 five seconds after', async () => {
    const { registry, guard } = guarded('a', 1);
    const { port, clock } = await serve({ registry });
    const entry = guard.tryAcquire();
    guard.tryAcquire();
    guard.tryAcquire();
    clock.advanceMs(1000);
    expect(await ask(port, '/overloaded')).toMatchObject({ status: 503 });
    if (entry.admitted) entry.release('success');
    clock.advanceMs(5000);
    expect(await ask(port, '/overloaded')).toMatchObject({ status: 200 });
  });

  it('answers HEAD without a body, and refuses other methods', async () => {
    const { port } = await serve();
    expect(await ask(port, '/status', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    const answer = await ask(port, '/status', { method: 'DELETE' });
    expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });

  it.each<{ options: object; says: string }>([
    {
      options: { registry: {} },
      says: 'status.registry.sources must be a function, got undefined',
    },
    { options: { timers: 5 }, says: 'status.timers must be an object, got 5' },
    {
      options: { basePath: 'elimit' },
      says: 'status.basePath must be empty or a path like /elimit, got "elimit"',
    },
    { options: { basePath: '/elimit/' }, says: 'status.basePath' },
    { options: { access: true }, says: 'status.access must be a function, got true' },
    { options: { overloadedAt: 0 }, says: 'status.overloadedAt' },
    { options: { overloadedAt: Number.NaN }, says: 'status.overloadedAt' },
    {
      options: { allowedHosts: 'localhost' },
      says: 'status.allowedHosts must be an array of host names',
    },
    { options: { port: 1 }, says: 'status.port is not an option; known: basePath' },
  ])('refuses $options', ({ options, says }) => {
    expect(() => status(options)).toThrow(says);
  });
});

describe('live feed', () => {
  async function watch(port: number) {
    const req = request({ host: '127.0.0.1', port, path: '/events' });
    req.end();
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    return { req, res };
  }

  it('sends each sample to everyone, and turns the twenty-first away', async () => {
    const { registry, guard } = guarded('a');
    const { port, clock } = await serve({ registry });
    const watchers = [];
    for (let i = 0; i < 20; i++) watchers.push(await watch(port));
    expect(watchers.every(({ res }) => res.statusCode === 200)).toBe(true);
    const late = await watch(port);
    expect(late.res.statusCode).toBe(503);
    const [first] = watchers;
    let text = '';
    first?.res.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    guard.tryAcquire();
    clock.advanceMs(1000);
    while (!text.includes('"guard:a:inflight":"1"'))
      await once(first?.res as NodeJS.ReadableStream, 'data');
    for (const { req } of [...watchers, late]) req.destroy();
  });
});

describe('changing flags', () => {
  async function change(
    options: { headers?: Record<string, string>; body?: unknown; allowChanges?: boolean } = {},
  ): Promise<{ answer: Answer; limit: number; events: ElimitEvent[] }> {
    const { registry, guard } = guarded('a');
    const events: ElimitEvent[] = [];
    const { port } = await serve({
      registry,
      allowChanges: options.allowChanges ?? true,
      onEvent: (event) => events.push(event),
    });
    const answer = await ask(port, '/flags', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        host: `localhost:${port}`,
        origin: `http://localhost:${port}`,
        ...options.headers,
      },
      body: JSON.stringify(options.body ?? { type: 'guard', name: 'a', set: { limit: 7 } }),
    });
    return { answer, limit: guard.maxConcurrency, events };
  }

  it('sets a live option and says so', async () => {
    const { answer, limit, events } = await change();
    expect(answer).toMatchObject({ status: 200 });
    expect(JSON.parse(answer.text)).toEqual({ saved: true, message: 'saved' });
    expect(limit).toBe(7);
    expect(events).toEqual([{ type: 'configure', name: 'a', changed: { limit: 7 } }]);
  });

  it.each<{ it: string; options: Parameters<typeof change>[0]; expected: number; says: string }>([
    {
      it: 'it is off',
      options: { allowChanges: false },
      expected: 403,
      says: 'allowChanges is off',
    },
    {
      it: 'another site asks',
      options: { headers: { origin: 'http://evil.test' } },
      expected: 403,
      says: 'not from this page',
    },
    {
      it: 'the origin is opaque',
      options: { headers: { origin: 'null' } },
      expected: 403,
      says: 'not from this page',
    },
    {
      it: 'the host is not ours (rebinding)',
      options: { headers: { host: 'evil.test', origin: 'http://evil.test' } },
      expected: 403,
      says: 'allowedHosts',
    },
    {
      it: 'a form sends it',
      options: { headers: { 'content-type': 'text/plain' } },
      expected: 415,
      says: 'application/json',
    },
    {
      it: 'the value is bad',
      options: { body: { type: 'guard', name: 'a', set: { limit: 0 } } },
      expected: 400,
      says: 'would admit nothing',
    },
    {
      it: 'the option is unknown',
      options: { body: { type: 'guard', name: 'a', set: { lmit: 1 } } },
      expected: 400,
      says: 'lmit is not an option',
    },
    {
      it: 'there is no such guard',
      options: { body: { type: 'guard', name: 'b', set: { limit: 1 } } },
      expected: 404,
      says: 'there is no guard \\"b\\"',
    },
    { it: 'it is not a change', options: { body: [1] }, expected: 400, says: 'expected' },
    {
      it: 'it is endless',
      options: { body: { set: 'x'.repeat(20_000) } },
      expected: 413,
      says: '16384 bytes',
    },
  ])('changes nothing when $it', async ({ options, expected, says }) => {
    const { answer, limit, events } = await change(options);
    expect(answer.status).toBe(expected);
    expect(answer.text).toContain(says);
    expect(limit).toBe(2);
    expect(events).toEqual([]);
  });
});

describe('in a framework', () => {
  it('serves under an Express mount, with links that stay below it', async () => {
    const { registry, guard } = guarded('a');
    const app = express();
    const pages = status({ registry, timers: new VirtualClock(), allowChanges: true });
    app.use(express.json());
    app.use('/elimit', pages);
    const server = await running(app.listen(0, '127.0.0.1'));
    clean.push(
      () => pages.close(),
      () => server.close(),
    );
    const { text } = await ask(server.port, '/elimit/status');
    expect(text).toContain('href="/elimit/connections"');
    // a parser that has read the body already
    const headers = {
      'content-type': 'application/json',
      host: `localhost:${server.port}`,
      origin: `http://localhost:${server.port}`,
    };
    const body = JSON.stringify({ type: 'guard', name: 'a', set: { limit: 9 } });
    const answer = await ask(server.port, '/elimit/flags', { method: 'POST', headers, body });
    expect(answer.status).toBe(200);
    expect(guard.maxConcurrency).toBe(9);
  });

  it('serves from Koa, and lets the rest through', async () => {
    const { registry, guard } = guarded('a');
    const app = new Koa();
    const pages = status({ registry, timers: new VirtualClock(), basePath: '/elimit' });
    app.use(pages.koa);
    app.use((ctx) => {
      ctx.body = 'mine';
    });
    const server = await running(app.listen(0, '127.0.0.1'));
    clean.push(
      () => pages.close(),
      () => server.close(),
    );
    expect((await ask(server.port, '/elimit/status')).text).toContain('href="/elimit/flags"');
    expect((await ask(server.port, '/else')).text).toBe('mine');
    expect(guard.inflight).toBe(0);
  });
});
