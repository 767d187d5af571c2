import { createGuards, createRegistry, type GuardsOptions, type Permit } from '@elimit/core';
import { SpyLimiter, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function make(options: GuardsOptions = {}) {
  const clock = new VirtualClock();
  return { clock, guards: createGuards({ clock, registry: false, random: () => 0.5, ...options }) };
}

describe('guards', () => {
  it('give each method its own value, the others the default, and opt out by name', () => {
    const { guards } = make({
      serverMaxConcurrency: 2000,
      methodMaxConcurrency: 40,
      methods: { search: { timeoutMs: 300, maxConcurrency: 100 }, health: 'unlimited' },
    });
    expect(guards.maxConcurrencyOf('search')).toBe(100);
    expect(guards.maxConcurrencyOf('health')).toBe(Number.POSITIVE_INFINITY);
    expect(guards.maxConcurrencyOf('orders')).toBe(40);
    expect(guards.server).toMatchObject({ name: 'server', maxConcurrency: 2000 });
    expect(guards.names()).toEqual(['search', 'health', 'orders']);
  });

  it('refuse at the server’s cap with the reason server, which teaches no method', () => {
    const method = new SpyLimiter(10);
    const server = new SpyLimiter(1);
    const { guards } = make({ serverMaxConcurrency: server, methods: { m: method } });
    const first = guards.tryAcquire('m');
    expect(guards.tryAcquire('m')).toMatchObject({
      admitted: false,
      reason: 'server',
      name: 'server',
    });
    expect(method.refusals).toEqual([]);
    expect(method.questions).toHaveLength(1);
    expect(server.refusals).toHaveLength(1);
    expect(guards.server.snapshot().rejected).toMatchObject({ server: 1, concurrency: 0 });
    (first as Permit).release('success');
    expect(guards.tryAcquire('m').admitted).toBe(true);
  });

  it('take no slot of the server for a call that the method refuses', () => {
    const { guards } = make({ serverMaxConcurrency: 5, methods: { m: 1 } });
    guards.tryAcquire('m');
    expect(guards.tryAcquire('m')).toMatchObject({ reason: 'concurrency', name: 'm' });
    expect(guards.server.snapshot()).toMatchObject({ inflight: 1, admitted: 1 });
  });

  it('time and release a call at both levels at once', () => {
    const method = new SpyLimiter();
    const server = new SpyLimiter();
    const { guards, clock } = make({ serverMaxConcurrency: server, methods: { m: method } });
    const permit = guards.tryAcquire('m') as Permit;
    clock.advance(7_000);
    permit.release('failure');
    permit.release('success');
    for (const spy of [method, server]) {
      expect(spy.samples).toMatchObject([{ outcome: 'failure', latencyUs: 7_000 }]);
    }
    expect([guards.server.inflight, guards.guardOf('m').inflight]).toEqual([0, 0]);
  });

  it('revoke at both levels', () => {
    const { guards } = make({ serverMaxConcurrency: 1, methods: { m: 1 } });
    (guards.tryAcquire('m') as Permit).revoke('queue');
    expect(guards.server.snapshot()).toMatchObject({ inflight: 0, revoked: 1 });
    expect(guards.guardOf('m').snapshot()).toMatchObject({
      inflight: 0,
      revoked: 1,
      rejected: { queue: 1 },
    });
    expect(guards.tryAcquire('m').admitted).toBe(true);
  });

  it('hold the server’s cap before execute of one method’s guard too', async () => {
    const { guards } = make({ serverMaxConcurrency: 1 });
    const inner = guards.guardOf('a').execute(() => guards.guardOf('b').execute(() => 1));
    await expect(inner).rejects.toMatchObject({ rejection: { reason: 'server' } });
    expect(guards.server.inflight).toBe(0);
  });

  it('refuse a passed deadline under the method’s name, asking nobody', () => {
    const server = new SpyLimiter(0);
    const { guards } = make({ serverMaxConcurrency: server });
    expect(guards.tryAcquire('m', { timeoutMs: 0 })).toMatchObject({
      reason: 'deadline',
      name: 'm',
    });
    expect(server.questions).toEqual([]);
  });

  it('let everything through in a dry run, at both levels', () => {
    const { guards } = make({ serverMaxConcurrency: 1, methods: { m: 2 }, dryRun: true });
    for (let i = 0; i < 4; i++) expect(guards.tryAcquire('m').admitted).toBe(true);
    expect(guards.server.snapshot()).toMatchObject({ inflight: 4, wouldReject: 3 });
    expect(guards.guardOf('m').snapshot()).toMatchObject({ inflight: 4, wouldReject: 2 });
  });

  it('hold the server’s cap for a method in a dry run, whatever deadline a call carries', () => {
    const { guards } = make({ serverMaxConcurrency: 1 });
    guards.guardOf('m').configure({ dryRun: true });
    expect(guards.tryAcquire('m', { timeoutMs: 0 }).admitted).toBe(true);
    expect(guards.tryAcquire('m', { timeoutMs: 0 })).toMatchObject({ reason: 'server' });
    expect(guards.guardOf('m').snapshot().wouldReject).toBe(1);
  });

  it('change a method’s limit under load', () => {
    const { guards } = make({ methods: { m: 100 } });
    const permits = Array.from({ length: 80 }, () => guards.tryAcquire('m') as Permit);
    guards.setMaxConcurrency('m', 10);
    expect(guards.tryAcquire('m').admitted).toBe(false);
    expect(guards.guardOf('m').inflight).toBe(80);
    guards.setMaxConcurrency('m', '81');
    expect(guards.tryAcquire('m').admitted).toBe(true);
    expect(() => guards.setMaxConcurrency('m', 0)).toThrow(
      /^the limit of m: .* would admit nothing/,
    );
    expect(guards.maxConcurrencyOf('m')).toBe(81);
    expect(permits).toHaveLength(80);
  });

  it('bound the guards of names that were not declared: the rest share other', () => {
    const registry = createRegistry();
    const { guards } = make({ methods: { 'GET /a': 5 }, maxNames: 3, registry });
    for (let i = 0; i < 50_000; i++) guards.guardOf(`GET /${i}`);
    expect(guards.names()).toEqual(['GET /a', 'GET /0', 'GET /1', 'other']);
    expect(guards.guardOf('GET /49999')).toBe(guards.guardOf('GET /777'));
    expect(guards.guardOf('GET /a').maxConcurrency).toBe(5);
    expect(registry.sources()).toHaveLength(5); // and the server
    guards.setMaxConcurrency('GET /late', 9); // declared from now on: never displaced
    expect(guards.maxConcurrencyOf('GET /late')).toBe(9);
  });

  it('have room for every declared name, however many', () => {
    const methods = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`m${i}`, i + 1]));
    const { guards } = make({ methods });
    expect(guards.maxConcurrencyOf('m299')).toBe(300);
    expect(guards.guardOf('undeclared').name).toBe('other');
  });

  it.each(['', '__proto__', 'constructor', 'a\0b', '<img src=x onerror=alert(1)>'])(
    'take any text for a name: %j',
    (name) => {
      const { guards } = make({ methodMaxConcurrency: 2 });
      const permit = guards.tryAcquire(name) as Permit;
      expect(guards.guardOf(name).inflight).toBe(1);
      permit.release('success');
      expect(guards.guardOf(name).name).toBe(name === '' ? 'other' : name);
    },
  );

  it('hear of the loop all together', () => {
    const { guards, clock } = make({ maxNames: 1 });
    guards.guardOf('a');
    guards.guardOf('b');
    clock.advance(3_000_000);
    guards.observeLoop({ turnUs: 1_000_000_000, idled: false });
    for (const guard of [guards.server, guards.guardOf('a'), guards.guardOf('b')]) {
      expect(guard.snapshot().loopDelayMs).toBe(1_000_000);
    }
  });

  it.each<[object | null, RegExp]>([
    [
      { limit: 5 },
      /guards\.limit is not an option; known: .*serverMaxConcurrency, methodMaxConcurrency, methods, maxNames, serverName/,
    ],
    [{ name: 'x' }, /guards\.name is not an option/],
    [{ serverMaxConcurrency: 0 }, /^guards\.serverMaxConcurrency: .* would admit nothing/],
    [{ serverMaxConcurrency: null }, /^guards\.serverMaxConcurrency: .* null is no limit/],
    [{ methodMaxConcurrency: 'consant' }, /^guards\.methodMaxConcurrency: .*no known limiter/],
    [{ methods: new Map([['a', 1]]) }, /guards\.methods must be an object, got a Map/],
    [{ methods: [] }, /guards\.methods must be an object, got an array of 0/],
    [{ methods: { a: -1 } }, /^guards\.methods\.a: .*would admit nothing/],
    [{ methods: { '': 1 } }, /guards method name must be a non-empty string/],
    [{ maxNames: 0 }, /guards\.maxNames must be a whole number from 1 to 1000000, got 0/],
    [{ maxNames: 1.5 }, /guards\.maxNames must be a whole number from 1 to 1000000, got 1\.5/],
    [{ serverName: '' }, /guards\.serverName must be a non-empty string/],
    [{ dryRun: 'no' }, /guard\.dryRun must be true or false/],
    [null, /guards must be an object, got null/],
  ])('refuse %j and list nothing', (options, message) => {
    const registry = createRegistry();
    expect(() => createGuards((options && { registry, ...options }) as never)).toThrow(message);
    expect(registry.sources()).toEqual([]);
  });
});
