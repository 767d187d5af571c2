import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import {
  CircuitBreaker,
  createGuard,
  createRegistry,
  type Limiter,
  type Registry,
  type SnapshotSource,
} from '@elimit/core';
import { status } from '@elimit/status';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ask, listen } from '../support.js';

const clean: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of clean.splice(0).toReversed()) await undo();
});

async function serve(registry: Registry) {
  const clock = new VirtualClock();
  const pages = status({ timers: clock, registry });
  const server = await listen((req, res) => pages(req, res));
  clean.push(
    () => pages.close(),
    () => server.close(),
  );
  return { ...server, clock, pages };
}

interface Live {
  readonly values: Readonly<Record<string, string>>;
}

/** The first event of the live feed. */
async function live(port: number): Promise<Live> {
  const req = request({ host: '127.0.0.1', port, path: '/events' }).end();
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of res.setEncoding('utf8')) {
    text += String(chunk);
    if (text.includes('\n\n')) break;
  }
  return JSON.parse(/data: (.*)\n/.exec(text)?.[1] ?? '') as Live;
}

function breakers(count: number, registry: Registry): CircuitBreaker[] {
  return Array.from({ length: count }, (_, i) => new CircuitBreaker({ name: `b${i}`, registry }));
}

const boom = (): never => {
  throw new Error('boom');
};

describe('a source that throws', () => {
  it('in its snapshot is left out, and ends no process by the sample a second', async () => {
    const registry = createRegistry();
    const odd: SnapshotSource = { snapshot: boom };
    registry.add(odd);
    const guard = createGuard({ limit: 1, name: 'mine', registry });
    const { port, clock } = await serve(registry);
    expect(() => clock.advanceMs(3000)).not.toThrow();
    expect((await ask(port, '/status')).text).toContain('<h3>mine</h3>');
    expect((await ask(port, '/metrics')).text).toContain('elimit_guard_inflight{name="mine"} 0');
    expect((await ask(port, '/overloaded')).status).toBe(200);
    expect(guard.inflight).toBe(0);
  });

  it('in its flags shows none, and the others theirs', async () => {
    const registry = createRegistry();
    const guard = createGuard({ limit: 1, name: 'mine', registry });
    const odd: SnapshotSource = { snapshot: () => guard.snapshot(), flags: boom };
    registry.add(odd);
    const { port } = await serve(registry);
    expect((await ask(port, '/flags')).text).toContain('dryRun');
    const { sources } = JSON.parse((await ask(port, '/flags.json')).text) as { sources: object[] };
    expect(sources).toMatchObject([{ name: 'mine' }, { name: 'mine#2', flags: [] }]);
  });
});

describe('an option that is no JSON', () => {
  it('is said in words, and spoils no page', async () => {
    const limiter = {
      maxConcurrency: 5,
      admits: () => true,
      started() {},
      refused() {},
      record() {},
      self: undefined as unknown,
      big: 5n,
    };
    limiter.self = limiter;
    const registry = createRegistry();
    const guard = createGuard({ limit: limiter satisfies Limiter, name: 'own', registry });
    const { port } = await serve(registry);
    const page = await ask(port, '/flags');
    expect(page.status).toBe(200);
    expect(page.text).toContain('<code>an object</code>');
    const { sources } = JSON.parse((await ask(port, '/flags.json')).text) as {
      sources: { flags: { name: string; value: unknown }[] }[];
    };
    expect(sources[0]?.flags[0]).toMatchObject({ name: 'limit', value: 'an object' });
    expect(guard.inflight).toBe(0);
  });
});

describe('more sources than are followed', () => {
  it('do not hide a guard from /overloaded', async () => {
    const registry = createRegistry();
    const many = breakers(200, registry);
    const guard = createGuard({ limit: 1, name: 'late', registry });
    const { port, clock } = await serve(registry);
    for (let i = 0; i < 10; i++) guard.tryAcquire();
    clock.advanceMs(1000);
    expect((await ask(port, '/overloaded')).status).toBe(503);
    expect(many).toHaveLength(200);
  });

  it('do not keep a shown guard from being live', async () => {
    const registry = createRegistry();
    const many = breakers(200, registry);
    const guard = createGuard({ limit: 1, name: 'late', registry });
    const { port } = await serve(registry);
    expect((await live(port)).values['guard:late:inflight']).toBe('0');
    expect([many.length, guard.inflight]).toEqual([200, 0]);
  });

  it('nor do two long names that begin alike make their figures one', async () => {
    const registry = createRegistry();
    const guards = ['a', 'b'].map((end) =>
      createGuard({ limit: 1, name: 'x'.repeat(200) + end, registry }),
    );
    guards[1]?.tryAcquire();
    const { port } = await serve(registry);
    const { values } = await live(port);
    const figures = Object.entries(values).filter(([key]) => key.endsWith(':inflight'));
    expect(figures.map(([, text]) => text)).toEqual(['0', '1']);
    const { text } = await ask(port, '/status');
    for (const [key] of figures) expect(text).toContain(`data-value="${key}"`);
  });
});
