import { RecoveringError } from '@elimit/client';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { answer, endOf, fail, never, virtualChannel } from './support/virtual-channel.js';

const GET = { method: 'GET' };
const moves = (events: readonly { type: string }[]) =>
  events.filter(({ type }) => type !== 'warning').map(({ type }) => type);

describe('always on', () => {
  it.each([
    { code: 'ECONNREFUSED', reason: 'refused' },
    { code: 'ENETUNREACH', reason: 'unreachable' },
    { code: 'EHOSTUNREACH', reason: 'unreachable' },
    { code: 'EINVAL', reason: 'unreachable' },
  ])('$code takes the node out at once', async ({ code, reason }) => {
    const { call, nodes, channel, events } = virtualChannel('ab');
    nodes.a = fail(code, { syscall: 'connect' });
    expect(await call()).toBe('b');
    expect(channel.endpoints()[0]).toMatchObject({
      state: 'open',
      reason,
      nBreak: 1,
      recentErrors: 1,
      isolationLeftMs: 100,
    });
    expect(events).toEqual([{ type: 'open', name: 'http://a', cause: reason, isolationMs: 100 }]);
  });

  it('the third connect timeout in a row does, and then they are counted anew', async () => {
    const { call, nodes, channel, state } = virtualChannel('ab');
    nodes.a = fail('ERR_CONNECT_TIMEOUT');
    for (let i = 0; i < 4; i++) await call();
    expect(channel.endpoints()[0]).toMatchObject({ failures: 2, state: 'closed' });
    await call();
    expect(channel.endpoints()[0]).toMatchObject({
      failures: 3,
      state: 'open',
      reason: 'connectTimeout',
    });
    expect(state('b')).toBe('closed');
  });

  it('an answer in between starts the count over', async () => {
    const { call, nodes, state } = virtualChannel('a');
    for (let i = 0; i < 10; i++) {
      nodes.a = fail('ERR_CONNECT_TIMEOUT');
      await endOf(call({ maxRetries: 0 }));
      await endOf(call({ maxRetries: 0 }));
      nodes.a = answer(500);
      await call();
    }
    expect(state('a')).toBe('closed');
  });

  it('error answers do not, where error cost is off: as for raw calls', async () => {
    const { call, nodes, channel } = virtualChannel('a');
    nodes.a = answer(500);
    for (let i = 0; i < 200; i++) await call();
    expect(channel.endpoints()[0]).toMatchObject({
      state: 'closed',
      recentErrors: 200,
      failures: 200,
    });
  });
});

describe('error cost', () => {
  it.each([
    { it: 'the channel', options: { errorCost: true }, call: {}, isolates: true },
    { it: 'the call', options: {}, call: { errorCost: true }, isolates: true },
    {
      it: 'the channel against the call',
      options: { errorCost: false },
      call: { errorCost: true },
      isolates: false,
    },
    {
      it: 'a call without breaker',
      options: { errorCost: true },
      call: { breaker: false },
      isolates: false,
    },
  ])('is decided by $it', async ({ options, call: callOptions, isolates }) => {
    const { call, nodes, state } = virtualChannel('a', options);
    nodes.a = answer(500);
    for (let i = 0; i < 20; i++) await endOf(call(callOptions));
    expect(state('a')).toBe(isolates ? 'open' : 'closed');
  });

  it.each([
    { it: '404', behaviour: answer(404) },
    { it: '429', behaviour: answer(429) },
    { it: "the caller's own cancel", behaviour: fail('ABORT_ERR') },
  ])('$it costs nothing', async ({ behaviour }) => {
    const { call, nodes, channel } = virtualChannel('a', { errorCost: true });
    nodes.a = behaviour;
    for (let i = 0; i < 100; i++) await endOf(call());
    expect(channel.endpoints()[0]).toMatchObject({ state: 'closed', failures: 0, recentErrors: 0 });
  });

  it('isolates at most half of the nodes, and asks again with the next failure', async () => {
    const { call, nodes, channel, clock, state } = virtualChannel('abc', { errorCost: true });
    for (const letter of 'abc') nodes[letter] = answer(500);
    for (let i = 0; i < 20; i++) await call();
    clock.advanceMs(1000); // no fault of all nodes any more, but one of each
    for (let i = 0; i < 200; i++) await call();
    expect(channel.endpoints().map((endpoint) => endpoint.state)).toEqual([
      'open',
      'closed',
      'closed',
    ]);
    nodes.b = fail('ECONNREFUSED'); // connections always isolate
    for (let i = 0; i < 2; i++) await endOf(call());
    expect(state('b')).toBe('open');
    expect(state('c')).toBe('closed');
  });

  it('isolates nobody for a fault of all nodes within commonFaultMs, and at once the one that keeps failing', async () => {
    const { call, nodes, clock, events, state } = virtualChannel('abcd', { errorCost: true });
    for (const letter of 'abcd') nodes[letter] = answer(500);
    for (let i = 0; i < 99; i++) {
      clock.advanceMs(10);
      await call();
    }
    expect(moves(events)).toEqual([]);
    for (const letter of 'bcd') nodes[letter] = () => letter;
    for (let i = 0; state('a') === 'closed' && i < 40; i++) {
      clock.advanceMs(10);
      await call();
    }
    expect(events).toMatchObject([{ type: 'open', name: 'http://a', cause: 'errorCost' }]);
  });

  it('isolates a node that came back by two failures in a row, while others are well', async () => {
    const failuresOf = async (letters: string): Promise<number> => {
      const { call, nodes, clock, channel, state } = virtualChannel(letters, { errorCost: true });
      for (let i = 0; i < 2000; i++) await endOf(call()); // failures are rare here
      nodes.a = fail('ECONNREFUSED');
      for (let i = 0; state('a') === 'closed' && i < 40; i++) await endOf(call());
      nodes.a = () => 'a';
      await clock.advanceMsAsync(100);
      for (let i = 0; i < 100; i++) {
        await clock.advanceMsAsync(20);
        await endOf(call());
      }
      const before = channel.endpoints()[0]?.failures ?? 0;
      nodes.a = answer(500);
      for (let i = 0; state('a') === 'closed' && i < 40; i++) await endOf(call());
      return (channel.endpoints()[0]?.failures ?? 0) - before;
    };
    expect(await failuresOf('abc')).toBe(2);
    expect(await failuresOf('a')).toBe(5);
  });

  it('isolates a single node: the cap needs two', async () => {
    const { call, nodes, state } = virtualChannel('a', { errorCost: true, maxIsolatedRatio: 0 });
    nodes.a = answer(500);
    for (let i = 0; i < 20; i++) await endOf(call());
    expect(state('a')).toBe('open');
  });
});

describe('the way back', () => {
  it('is isolation, check, half-open by a few trial calls, closed with a ramp', async () => {
    const { call, nodes, clock, checks, channel, state, events } = virtualChannel('ab', {
      breaker: { minIsolationMs: 1000, rampMs: 1000 },
    });
    nodes.a = fail('ECONNREFUSED');
    await call();
    nodes.a = () => 'a';
    await clock.advanceMsAsync(999);
    expect(checks).toEqual([]); // the least isolation is kept, though a check would pass at once
    await clock.advanceMsAsync(1);
    expect(checks).toEqual(['a']);
    expect(state('a')).toBe('halfOpen');
    const trials = await Promise.all(Array.from({ length: 4 }, () => call()));
    expect(trials.filter((from) => from === 'a')).toHaveLength(1); // one at a time, the rest goes elsewhere
    for (let i = 0; state('a') !== 'closed' && i < 20; i++) await call();
    expect(channel.endpoints()[0]).toMatchObject({
      state: 'closed',
      rampRatio: 0.1,
      recentErrors: 0,
      nBreak: 1,
    });
    await clock.advanceMsAsync(500);
    expect(channel.endpoints()[0]?.rampRatio).toBe(0.5);
    await clock.advanceMsAsync(500);
    expect(channel.endpoints()[0]?.rampRatio).toBe(1);
    expect(moves(events)).toEqual(['open', 'halfOpen', 'close']);
  });

  it('gives a ramping node its share only, while there are others', async () => {
    const { call, nodes, clock, state } = virtualChannel('ab', {
      breaker: { minIsolationMs: 1000, rampMs: 1000 },
    });
    nodes.a = fail('ECONNREFUSED');
    await call();
    nodes.a = () => 'a';
    await clock.advanceMsAsync(1000);
    for (let i = 0; state('a') !== 'closed' && i < 20; i++) await call();
    const calls = [];
    for (let i = 0; i < 100; i++) calls.push(await call());
    // asked for every second call, a lets a tenth of those through, the first one included
    expect(calls.filter((from) => from === 'a').length).toBeLessThanOrEqual(11);
    expect(calls.filter((from) => from === 'a').length).toBeGreaterThanOrEqual(5);
  });

  it('turns no call away for a ramp alone', async () => {
    const { call, nodes, clock, state } = virtualChannel('a', {
      breaker: { rampMs: 1000, minIsolationMs: 1000 },
    });
    nodes.a = fail('ECONNREFUSED');
    await endOf(call());
    nodes.a = () => 'a';
    await clock.advanceMsAsync(1000);
    while (state('a') !== 'closed') await call();
    for (let i = 0; i < 50; i++) expect(await call()).toBe('a');
  });

  it('waits for the check: every interval from the last start, each with its own time, never two at once', async () => {
    let running = 0;
    let most = 0;
    let started = 0;
    const { call, nodes, clock, state } = virtualChannel('ab', {
      healthCheck: {
        intervalMs: 1000,
        timeoutMs: 5000, // cut to the interval
        probe: (_target, signal) => {
          started += 1;
          running += 1;
          most = Math.max(most, running);
          return new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              running -= 1;
              resolve(true); // too late to count
            });
          });
        },
      },
    });
    nodes.a = fail('ECONNREFUSED');
    await call();
    await clock.advanceMsAsync(100 + 3500);
    expect({ started, running, most }).toEqual({ started: 4, running: 1, most: 1 });
    expect(state('a')).toBe('open');
  });

  it.each([
    { it: 'false', probe: () => Promise.resolve(false) },
    { it: 'a rejection', probe: () => Promise.reject(new Error('no')) },
    {
      it: 'a throw',
      probe: () => {
        throw new Error('no');
      },
    },
  ])('a probe that ends in $it means not yet', async ({ probe }) => {
    const { call, nodes, clock, state } = virtualChannel('ab', {
      healthCheck: { intervalMs: 1000, probe },
    });
    nodes.a = fail('ECONNREFUSED');
    await call();
    await clock.advanceMsAsync(10_000);
    expect(state('a')).toBe('open');
    expect(clock.pendingTimers).toBe(1); // the next check
  });

  it('is longer after each relapse when the check lies, within bounds', async () => {
    const { call, nodes, clock, events } = virtualChannel('ab', {
      breaker: { maxIsolationMs: 800 },
    });
    nodes.a = fail('ECONNREFUSED');
    for (let i = 0; i < 60; i++) {
      await call();
      await clock.advanceMsAsync(100);
    }
    const isolations = events.flatMap((event) =>
      event.type === 'open' ? [event.isolationMs] : [],
    );
    expect(isolations.slice(0, 6)).toEqual([100, 200, 400, 800, 800, 800]);
  });

  it('survives a trial call that never settles: it fails at its deadline, and the next trial follows', async () => {
    const { call, nodes, clock, state, events } = virtualChannel('ab', {
      timeoutMs: 60_000,
      breaker: { trialTimeoutMs: 1000 },
    });
    nodes.a = fail('ECONNREFUSED');
    await call();
    await clock.advanceMsAsync(100);
    nodes.a = never;
    const hung = [endOf(call()), endOf(call())];
    expect(await call()).toBe('b'); // others go elsewhere meanwhile
    await clock.advanceMsAsync(1000);
    expect(state('a')).toBe('open');
    nodes.a = () => 'a';
    await clock.advanceMsAsync(200);
    expect(state('a')).toBe('halfOpen');
    expect(moves(events)).toEqual(['open', 'halfOpen', 'open', 'halfOpen']);
    await Promise.all(hung);
  });

  it('drops results of calls begun before the isolation', async () => {
    const { call, nodes, clock, channel, events } = virtualChannel('ab', {
      errorCost: true,
      timeoutMs: 60_000,
    });
    const ends: ((how: 'good' | 'bad') => void)[] = [];
    nodes.a = () =>
      new Promise((resolve, reject) =>
        ends.push((how) =>
          how === 'good'
            ? resolve('a')
            : reject(Object.assign(new Error(), { code: 'ECONNRESET' })),
        ),
      );
    nodes.b = nodes.a;
    const calls = Array.from({ length: 40 }, () => endOf(call()));
    for (const bad of ends.filter((_, i) => i % 2 === 0).slice(0, 8)) bad('bad');
    await clock.advanceMsAsync(0);
    expect(channel.endpoints()[0]).toMatchObject({ state: 'open', nBreak: 1 });
    const late = ends.filter((_, i) => i % 2 === 0).slice(8);
    for (const end of late.slice(0, 6)) end('bad');
    await clock.advanceMsAsync(100); // half-open
    for (const end of late.slice(6, 9)) end('good');
    for (const end of late.slice(9)) end('bad');
    await clock.advanceMsAsync(0);
    expect(channel.endpoints()[0]).toMatchObject({ state: 'halfOpen', nBreak: 1 });
    expect(moves(events)).toEqual(['open', 'halfOpen']);
    channel.close();
    await Promise.all(calls);
  });

  it('counts an error answer to a trial call as good where error cost is off', async () => {
    const { call, nodes, clock, state } = virtualChannel('a');
    nodes.a = fail('ECONNREFUSED');
    await endOf(call());
    nodes.a = answer(500);
    await clock.advanceMsAsync(100);
    for (let i = 0; i < 3; i++) await call();
    expect(state('a')).toBe('closed');
  });

  it('needs no check where checks are off: real calls are the trial', async () => {
    const { call, nodes, clock, state, checks } = virtualChannel('ab', { healthCheck: false });
    nodes.a = fail('ECONNREFUSED');
    await call();
    nodes.a = () => 'a';
    expect(clock.pendingTimers).toBe(0);
    await clock.advanceMsAsync(100);
    expect(state('a')).toBe('halfOpen');
    for (let i = 0; state('a') !== 'closed' && i < 20; i++) await call();
    expect(state('a')).toBe('closed');
    expect(checks).toEqual([]);
  });
});

describe('recovery of a cluster', () => {
  it('lets traffic back in step with the working servers, and ends when their number stands still', async () => {
    const { call, nodes, clock, healthy, events } = virtualChannel('ab', {
      minWorkingInstances: 2,
      holdMs: 2000,
      breaker: { halfOpenWindowSize: 0, rampMs: 0 },
      healthCheck: { intervalMs: 1000 },
    });
    for (const letter of 'ab') {
      nodes[letter] = fail('ECONNREFUSED');
      healthy[letter] = false;
    }
    await endOf(call());
    expect(await endOf(call())).toMatchObject({ code: 'ERR_NO_ENDPOINT' });
    for (let i = 0; i < 10; i++) {
      const error = await endOf(call());
      expect(RecoveringError.is(error)).toBe(true);
      expect(error).toMatchObject({
        code: 'ERR_RECOVERING',
        brpcCode: 1018,
        status: 502,
        usable: 0,
      });
    }
    healthy.a = true;
    nodes.a = () => 'a';
    await clock.advanceMsAsync(1100);
    const ends = [];
    for (let i = 0; i < 100; i++) ends.push(await endOf(call()));
    expect(ends.filter((end) => end === 'a')).toHaveLength(50); // one of two
    await clock.advanceMsAsync(2001);
    for (let i = 0; i < 20; i++) expect(await call()).toBe('a');
    expect(events.filter(({ type }) => type === 'mode')).toMatchObject([
      { from: 'normal', to: 'recovering' },
      { from: 'recovering', to: 'normal' },
    ]);
  });

  it('is off unless asked for', async () => {
    const { call, nodes, clock } = virtualChannel('ab');
    for (const letter of 'ab') nodes[letter] = fail('ECONNREFUSED');
    await endOf(call());
    for (let i = 0; i < 5; i++)
      expect(await endOf(call())).toMatchObject({ code: 'ERR_NO_ENDPOINT' });
    nodes.a = () => 'a';
    nodes.b = fail('ECONNREFUSED');
    await clock.advanceMsAsync(100);
    expect(await endOf(call())).toBe('a');
  });
});

describe('sharing', () => {
  it('is by key and group: one channel isolates for the others', async () => {
    const clock = new VirtualClock();
    const one = virtualChannel('a', {}, { clock });
    const two = virtualChannel('a', {}, { clock });
    const other = virtualChannel('a', { connectionGroup: 'batch' }, { clock });
    one.nodes.a = fail('ECONNREFUSED');
    await endOf(one.call());
    expect([one.state('a'), two.state('a'), other.state('a')]).toEqual(['open', 'open', 'closed']);
    expect(two.events).toEqual(one.events);
    one.channel.close();
    expect(two.state('a')).toBe('open');
    await clock.advanceMsAsync(100);
    expect(two.state('a')).toBe('halfOpen'); // the check goes on for the channel that is left
  });

  it.each([
    { it: 'case', groups: ['A', 'a'], same: false },
    { it: 'spaces around', groups: [' a ', 'a'], same: true },
  ])('of a group: $it', async ({ groups, same }) => {
    const clock = new VirtualClock();
    const [one, two] = groups.map((connectionGroup) =>
      virtualChannel('a', { connectionGroup }, { clock }),
    ) as [ReturnType<typeof virtualChannel>, ReturnType<typeof virtualChannel>];
    await one.call();
    expect(two.channel.endpoints()[0]?.calls).toBe(same ? 1 : 0);
  });

  it('tells health paths, hosts and certificates apart', () => {
    const clock = new VirtualClock();
    const names = [
      virtualChannel('a', {}, { clock }),
      virtualChannel('a', { healthCheck: { path: '/up' } }, { clock }),
      virtualChannel('a', { healthCheck: false }, { clock }),
      virtualChannel('', { nodes: [{ url: 'http://a', host: 'b' }] }, { clock }),
      virtualChannel('', { nodes: ['https://a'], tls: { ca: 'one' } }, { clock }),
      virtualChannel('', { nodes: ['https://a'], tls: { ca: 'two' } }, { clock }),
      virtualChannel(
        '',
        { nodes: ['https://a'], tls: { ca: ['one'], secureContext: {} as never } },
        { clock },
      ),
    ].map(({ channel }) => channel.endpoints()[0]?.name);
    expect(new Set(names).size).toBe(7);
    expect(names.slice(0, 4)).toEqual([
      'http://a',
      'http://a health=/up',
      'http://a health=off',
      'http://a host=b',
    ]);
  });

  it('warns once when options differ, and the first ones stand', async () => {
    const clock = new VirtualClock();
    const one = virtualChannel('a', { breaker: { minIsolationMs: 300 } }, { clock });
    const two = virtualChannel('a', { breaker: { minIsolationMs: 100 } }, { clock });
    virtualChannel('a', { healthCheck: { intervalMs: 7000 } }, { clock });
    two.nodes.a = fail('ECONNREFUSED');
    await endOf(two.call());
    expect(two.channel.endpoints()[0]?.isolationLeftMs).toBe(300);
    expect(one.events.filter(({ type }) => type === 'warning')).toMatchObject([
      { code: 'WARN_ENDPOINT_OPTIONS', name: 'http://a' },
    ]);
  });

  it('warns when a channel seems to be made for each request', () => {
    const clock = new VirtualClock();
    const first = virtualChannel('a', {}, { clock });
    for (let i = 1; i < 150; i++) virtualChannel('a', {}, { clock });
    expect(first.events).toMatchObject([{ type: 'warning', code: 'WARN_MANY_CHANNELS' }]);
  });

  it('lives in the registry as long as a channel holds it', () => {
    const clock = new VirtualClock();
    const one = virtualChannel('ab', {}, { clock });
    const two = virtualChannel('a', {}, { clock });
    expect(one.registry.sources().map((source) => source.snapshot())).toMatchObject([
      { type: 'endpoint', name: 'http://a' },
      { type: 'endpoint', name: 'http://b' },
    ]);
    expect(one.registry.sources()[0]).toBe(two.registry.sources()[0]);
    one.channel.close();
    one.channel.close();
    expect(one.registry.sources()).toHaveLength(1);
    two.channel.close();
    expect(one.registry.sources()).toHaveLength(0);
  });

  it('shows and changes the numbers of its breaker', async () => {
    const { registry, nodes, call, channel } = virtualChannel('a');
    const [endpoint] = registry.sources();
    endpoint?.configure?.({ minIsolationMs: 250 });
    expect(endpoint?.flags?.()).toContainEqual(
      expect.objectContaining({ name: 'minIsolationMs', value: 250 }),
    );
    nodes.a = fail('ECONNREFUSED');
    await endOf(call());
    expect(channel.endpoints()[0]?.isolationLeftMs).toBe(250);
  });
});

describe('origins that are not listed', () => {
  it('are guarded each by itself, by time and real calls', async () => {
    const { call, nodes, channel, clock, checks, state } = virtualChannel('', { unlisted: true });
    nodes.x = fail('ECONNREFUSED');
    await endOf(call({ origin: 'http://x' }));
    expect(await call({ origin: 'http://y' })).toBe('y');
    expect(await endOf(call({ origin: 'http://x' }))).toMatchObject({
      code: 'ERR_NO_ENDPOINT',
      origin: 'http://x',
      message: 'channel channel: http://x cannot be used now; the first isolation ends in 100 ms',
    });
    await clock.advanceMsAsync(100);
    expect(checks).toEqual([]);
    expect(state('x')).toBe('halfOpen');
    expect(channel.endpoints().map(({ name }) => name)).toEqual([
      'http://y health=off',
      'http://x health=off',
    ]);
  });

  it('are named where their time is over', async () => {
    const { call, nodes, clock } = virtualChannel('', { unlisted: true });
    nodes.x = () => new Promise(() => {});
    const late = call({ origin: 'http://x' }).catch((error: unknown) => error);
    await clock.advanceMsAsync(500);
    expect(await late).toMatchObject({
      code: 'ERR_TIMEOUT',
      message: expect.stringContaining('a call on channel channel to http://x') as unknown,
    });
  });

  it('are the listed node where there is one', async () => {
    const { call, channel } = virtualChannel('ab');
    await call({ origin: 'http://b' });
    expect(channel.endpoints().map(({ calls }) => calls)).toEqual([0, 1]);
  });

  it('are kept in a bounded list, the one used longest ago forgotten first', async () => {
    const { call, channel, registry } = virtualChannel('', { unlisted: true, maxUnlisted: 3 });
    for (const origin of ['p', 'q', 'r', 'p', 's']) await call({ origin: `http://${origin}` });
    expect(channel.endpoints().map(({ origin }) => origin)).toEqual([
      'http://r',
      'http://p',
      'http://s',
    ]);
    expect(registry.sources()).toHaveLength(3);
  });

  it('are forgotten after an idle life', async () => {
    const { call, channel, clock } = virtualChannel('', { unlisted: true });
    await call({ origin: 'http://p' });
    await clock.advanceMsAsync(300_001);
    await call({ origin: 'http://q' });
    expect(channel.endpoints().map(({ origin }) => origin)).toEqual(['http://q']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('are bounded at 1000', async () => {
    const { call, channel, registry } = virtualChannel('', { unlisted: true });
    for (let i = 0; i < 1500; i++) await call({ origin: `http://h${i}` });
    expect(channel.endpoints()).toHaveLength(1000);
    channel.close();
    expect(registry.sources()).toHaveLength(0);
  });

  it('need an origin', async () => {
    const { call } = virtualChannel('', { unlisted: true });
    expect(await endOf(call())).toMatchObject({ message: 'channel channel knows no endpoint' });
  });
});

describe('close', () => {
  it('ends calls in flight, timers and health checks, once', async () => {
    const { call, nodes, clock, channel, healthy, attempts } = virtualChannel('ab');
    healthy.a = false;
    nodes.a = fail('ECONNREFUSED');
    await call();
    nodes.b = never;
    const end = call(GET);
    await clock.advanceMsAsync(150);
    expect(clock.pendingTimers).toBeGreaterThan(0);
    channel.close();
    expect(await endOf(end)).toMatchObject({ code: 'ERR_CHANNEL_CLOSED' });
    expect(attempts.at(-1)?.signal.aborted).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    channel.close();
    expect(channel.isClosed).toBe(true);
    expect(await endOf(call())).toMatchObject({ code: 'ERR_CHANNEL_CLOSED' });
    expect(channel.endpoints()).toEqual([]);
  });
});

it('hears no more of a listener that throws', async () => {
  const { call, nodes } = virtualChannel('ab', {
    onEvent: () => {
      throw new Error('listener');
    },
  });
  nodes.a = fail('ECONNREFUSED');
  expect(await call()).toBe('b');
});
