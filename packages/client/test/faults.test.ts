import { type Channel, type ChannelOptions, dnsNaming } from '@elimit/client';
import type { ElimitEvent, EndpointSnapshot } from '@elimit/core';
import {
  closedPort,
  hang,
  ok,
  refuse,
  reset,
  resetMidBody,
  startSilentHost,
  status,
  VirtualClock,
} from '@elimit/testkit';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Answer, httpTry } from './support/http-try.js';
import { atEnd, openChannel, start } from './support/opened.js';

/** Allowance for a busy machine: bounds of the clock are those of the settings plus this. */
const SLACK_MS = 400;
const GET = { method: 'GET', errorCost: true };

jest.setTimeout(30_000); // for busy machines: alone each takes less than a second

let events: ElimitEvent[];
beforeEach(() => {
  events = [];
});

function channelTo(nodes: readonly string[], options: ChannelOptions = {}): Channel {
  return openChannel({
    nodes,
    onEvent: (event) => events.push(event),
    ...options,
    breaker: { minIsolationMs: 1000, ...options.breaker },
  });
}

const of = (channel: Channel, url: string) =>
  channel.endpoints().find(({ origin }) => origin === url) as EndpointSnapshot;

async function until(what: string, check: () => boolean, withinMs = 5000): Promise<number> {
  const from = performance.now();
  while (!check()) {
    if (performance.now() - from > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - from;
}

/** Calls one after the other until `check` holds; gives how the calls ended. */
async function callUntil(
  channel: Channel,
  check: () => boolean,
  withinMs = 5000,
): Promise<unknown[]> {
  const ends: unknown[] = [];
  const from = performance.now();
  while (!check()) {
    if (performance.now() - from > withinMs) throw new Error(`not within ${withinMs} ms`);
    ends.push(await endOf(channel.execute(httpTry(), GET)));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return ends;
}

async function endOf(call: Promise<Answer>): Promise<unknown> {
  try {
    return (await call).status;
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

const times = (n: number) => Array.from({ length: n });

describe('a node that is down', () => {
  it('with its port closed is out with the first refusal, without a wait, and no caller sees it', async () => {
    const good = await start();
    const bad = await closedPort();
    const still = new VirtualClock(); // it never moves: what waits for a time waits for ever
    const channel = channelTo([bad, good.url], { clock: still, timers: still });
    const ends = [
      await endOf(channel.execute(httpTry(), GET)),
      await endOf(channel.execute(httpTry(), GET)),
    ];
    expect(ends).toEqual([200, 200]);
    expect(of(channel, bad)).toMatchObject({ state: 'open', reason: 'refused', nBreak: 1 });
    expect(events).toMatchObject([{ type: 'open', cause: 'refused' }]);
  });

  it('that swallows SYNs is told from a slow one, and out with the third connect timeout', async () => {
    const good = await start();
    const silent = await startSilentHost();
    atEnd(() => silent.close());
    const channel = channelTo([silent.url, good.url], {
      connectTimeoutMs: 60,
      balancer: 'roundRobin',
    });
    const causes: unknown[] = [];
    const from = performance.now();
    for (let i = 0; i < 3; i++) {
      causes.push(
        await endOf(channel.execute(httpTry(), { ...GET, origin: silent.url, maxRetries: 0 })),
      );
      expect(of(channel, silent.url).state).toBe(i < 2 ? 'closed' : 'open');
    }
    expect(causes).toEqual(times(3).map(() => 'ERR_CONNECT_TIMEOUT'));
    expect(of(channel, silent.url)).toMatchObject({ reason: 'connectTimeout', nBreak: 1 });
    expect(performance.now() - from).toBeLessThan(3 * 60 + SLACK_MS);
    // a POST may move on: no byte of it has left
    expect(await endOf(channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST' }))).toBe(200);
  });
});

describe('a node that is up and of no use', () => {
  it('accepts and never answers: out within two timeouts', async () => {
    const good = await start();
    const bad = await start(hang);
    const clock = new VirtualClock();
    const channel = channelTo([bad.url, good.url], {
      timeoutMs: 300,
      connectTimeoutMs: 100,
      clock,
      timers: clock,
    });
    const calls = times(20).map(() => endOf(channel.execute(httpTry(), GET)));
    await until('one half has been answered', () => of(channel, good.url).inflight === 0);
    await until('the other one is there', () => bad.seen.length === 10);
    clock.advanceMs(2 * 300);
    const ends = await Promise.all(calls);
    expect(ends.filter((end) => end === 200)).toHaveLength(10); // a hung node is not retried without tryTimeoutMs
    expect(ends.filter((end) => end === 'ERR_TIMEOUT')).toHaveLength(10);
    expect(of(channel, bad.url)).toMatchObject({ state: 'open', reason: 'errorCost' });
    await until(
      'the server sees the sockets of the late calls close',
      () => bad.openConnections === 0,
    );
  });

  it('with tryTimeoutMs the callers do not even notice', async () => {
    const good = await start();
    const bad = await start(hang);
    const channel = channelTo([bad.url, good.url], {
      timeoutMs: 5000,
      connectTimeoutMs: 500,
      tryTimeoutMs: 1000,
      retryBudget: { floor: 20 },
    });
    const ends = await Promise.all(times(20).map(() => endOf(channel.execute(httpTry(), GET))));
    expect(ends).toEqual(times(20).map(() => 200));
    expect(of(channel, bad.url).state).toBe('open');
  });

  it('answers slowly: gets less under leastLoaded, and is not isolated for it', async () => {
    const fast = await start();
    const slow = await start((_request, response) => setTimeout(() => response.end('slow'), 60));
    const channel = channelTo([slow.url, fast.url], { balancer: 'leastLoaded' });
    for (let i = 0; i < 100; i++) await channel.execute(httpTry(), GET);
    expect(of(channel, slow.url).calls).toBeLessThan(30);
    expect(of(channel, slow.url)).toMatchObject({ state: 'closed', failures: 0 });
    expect(of(channel, slow.url).meanLatencyUs).toBeGreaterThan(50_000);
  });

  it('resets in the middle of the body: counted, GETs move on, POSTs do not, and it is isolated', async () => {
    const good = await start();
    const bad = await start(resetMidBody);
    const channel = channelTo([bad.url, good.url]);
    const post = await endOf(
      channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST', errorCost: true }),
    );
    expect(post).toBe('ECONNRESET');
    const ends = await callUntil(channel, () => of(channel, bad.url).state === 'open');
    expect(ends).toEqual(ends.map(() => 200));
    expect(of(channel, bad.url).reason).toBe('errorCost');
    expect(bad.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  it('kills connections: a POST with bytes sent is not sent again, unless told', async () => {
    const bad = await start(reset);
    const good = await start();
    const channel = channelTo([bad.url, good.url], { errorCost: false });
    expect(await endOf(channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST' }))).toBe(
      'ECONNRESET',
    );
    expect(good.seen).toHaveLength(0);
    await channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST' }); // round robin: the good one
    expect(
      await endOf(channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST', resend: true })),
    ).toBe(200);
    expect(bad.seen).toHaveLength(2);
  });

  it('fails half of its calls with 500: isolated, and afterwards callers see no error', async () => {
    const good = await start();
    let n = 0;
    const bad = await start((request, response) =>
      (n++ % 2 === 0 ? status(500) : ok)(request, response),
    );
    const channel = channelTo([bad.url, good.url], { breaker: { minIsolationMs: 2000 } });
    const ends = await callUntil(channel, () => of(channel, bad.url).state === 'open');
    expect(ends.filter((end) => end === 500).length).toBeLessThanOrEqual(60);
    const after = await Promise.all(times(50).map(() => endOf(channel.execute(httpTry(), GET))));
    expect(after).toEqual(times(50).map(() => 200));
  });

  it('refuses with ELIMIT: calls move on, and it is never isolated', async () => {
    const good = await start();
    const full = await start(refuse());
    const channel = channelTo([full.url, good.url]);
    const ends = [];
    for (let i = 0; i < 60; i++)
      ends.push(
        await endOf(
          channel.execute(httpTry('/', 'POST', 'x'), { method: 'POST', errorCost: true }),
        ),
      );
    expect(ends).toEqual(times(60).map(() => 200));
    expect(of(channel, full.url)).toMatchObject({ state: 'closed', failures: 0, recentErrors: 0 });
    expect(of(channel, full.url).refusals).toBe(full.seen.length);
    expect(full.seen.length).toBeLessThan(5); // its Retry-After is heeded
  });
});

describe('a node that comes back', () => {
  it('takes calls again within a health interval after the isolation', async () => {
    const good = await start();
    const other = await start();
    const channel = channelTo([other.url, good.url], {
      healthCheck: { intervalMs: 100, timeoutMs: 100 },
      breaker: { minIsolationMs: 100 },
    });
    await channel.execute(httpTry(), GET);
    await channel.execute(httpTry(), GET);
    await other.stop();
    await callUntil(channel, () => of(channel, other.url).state === 'open');
    await new Promise((resolve) => setTimeout(resolve, 250)); // some checks fail
    expect(of(channel, other.url).state).toBe('open');
    const leftMs = of(channel, other.url).isolationLeftMs;
    await other.restart();
    const tookMs = await until('half-open', () => of(channel, other.url).state !== 'open');
    expect(tookMs).toBeLessThan(leftMs + 100 + SLACK_MS);
    const ends = await callUntil(channel, () => of(channel, other.url).state === 'closed');
    expect(ends).toEqual(ends.map(() => 200));
    expect(of(channel, other.url)).toMatchObject({ recentErrors: 0, nBreak: 1 });
  });

  it('is not believed for its TCP port where a path is checked', async () => {
    const good = await start();
    const sick = await start((request, response) => {
      (request.url === '/healthz' ? status(301, { location: '/' }) : hang)(request, response);
    });
    const channel = channelTo([sick.url, good.url], {
      timeoutMs: 1000,
      connectTimeoutMs: 500,
      healthCheck: { intervalMs: 60, timeoutMs: 50, path: '/healthz' },
      breaker: { minIsolationMs: 100 },
    });
    await Promise.all(times(20).map(() => endOf(channel.execute(httpTry(), GET))));
    expect(of(channel, sick.url).state).toBe('open');
    const checks = () => sick.seen.filter(({ url }) => url === '/healthz').length;
    for (const handler of [status(301, { location: '/' }), status(401), status(500), hang, reset]) {
      sick.handler = handler;
      const before = checks();
      await until('two checks', () => checks() >= before + 2);
      expect(of(channel, sick.url).state).toBe('open');
    }
    sick.handler = ok;
    await until('half-open', () => of(channel, sick.url).state === 'halfOpen');
    const ends = await callUntil(channel, () => of(channel, sick.url).state === 'closed');
    expect(ends).toEqual(ends.map(() => 200));
  });

  it('and lies is isolated again, for longer each time', async () => {
    const good = await start();
    const liar = await start((request, response) => {
      (request.url === '/healthz' ? ok : status(500))(request, response);
    });
    const channel = channelTo([liar.url, good.url], {
      healthCheck: { intervalMs: 50, path: '/healthz' },
      breaker: { minIsolationMs: 20, maxIsolationMs: 80, isolationJitterRatio: 0 },
    });
    const isolations = () =>
      events.flatMap((event) => (event.type === 'open' ? [event.isolationMs] : []));
    await callUntil(channel, () => isolations().length >= 5);
    expect(isolations().slice(0, 5)).toEqual([20, 40, 80, 80, 80]);
    expect(of(channel, liar.url).nBreak).toBeGreaterThanOrEqual(5);
  });
});

it('DNS that changes: calls follow, and the node that left is asked no more', async () => {
  // two loopback addresses on one port: what a name may stand for
  const old = await start();
  let addresses = ['127.0.0.1'];
  const channel = openChannel({
    naming: dnsNaming(`http://search.test:${old.port}`, {
      intervalMs: 20,
      resolve: () => Promise.resolve(addresses),
    }),
    healthCheck: { intervalMs: 20 },
  });
  expect(await endOf(channel.execute(httpTry(), GET))).toBe(200);
  expect(old.seen[0]?.headers.host).toBe(`search.test:${old.port}`);
  addresses = ['127.0.0.2'];
  await until(
    'the new list',
    () => channel.endpoints()[0]?.origin === `http://127.0.0.2:${old.port}`,
  );
  await until('idle connections to the old one close', () => old.openConnections === 0);
  expect(await endOf(channel.execute(httpTry(), GET))).toBe('ECONNREFUSED'); // it listens on 127.0.0.1 only
  addresses = ['127.0.0.1'];
  await until('the old list', () => channel.endpoints()[0]?.origin === old.url);
  expect(await endOf(channel.execute(httpTry(), GET))).toBe(200);
});

it('50 nodes of which one is bad: it is found, the others stay, callers see at most its first failures', async () => {
  const good = await Promise.all(times(49).map(() => start()));
  const bad = await start(status(500));
  const channel = channelTo([...good.map(({ url }) => url), bad.url], {
    breaker: { minIsolationMs: 4000 },
  });
  const ends: unknown[] = [];
  while (of(channel, bad.url).state === 'closed' && ends.length < 2000) {
    ends.push(...(await Promise.all(times(50).map(() => endOf(channel.execute(httpTry(), GET))))));
  }
  expect(of(channel, bad.url)).toMatchObject({ state: 'open', reason: 'errorCost' });
  expect(ends.filter((end) => end === 500).length).toBeLessThanOrEqual(10);
  const after = await Promise.all(times(200).map(() => endOf(channel.execute(httpTry(), GET))));
  expect(after).toEqual(times(200).map(() => 200));
  expect(
    channel
      .endpoints()
      .filter(({ nBreak }) => nBreak > 0)
      .map(({ origin }) => origin),
  ).toEqual([bad.url]);
});

describe('connections', () => {
  it('are kept alive, and an orderly close while idle is no failure', async () => {
    const server = await start();
    const channel = channelTo([server.url]);
    for (let i = 0; i < 5; i++) await channel.execute(httpTry(), GET);
    expect(server.connections).toBe(1);
    await server.stop();
    await server.restart();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(of(channel, server.url)).toMatchObject({ state: 'closed', failures: 0 });
    expect(await endOf(channel.execute(httpTry(), GET))).toBe(200);
  });

  it('that idle are dropped at isolation; calls in flight finish', async () => {
    const held: (() => void)[] = [];
    const server = await start((request, response) => {
      if (request.url === '/hold') held.push(() => response.end('held'));
      else response.end('ok');
    });
    const channel = channelTo([server.url]);
    const long = channel.execute(httpTry('/hold'), { ...GET, timeoutMs: 5000 });
    await until('the long call is there', () => held.length === 1);
    await channel.execute(httpTry(), GET);
    expect(server.openConnections).toBe(2);
    await endOf(
      channel.execute(() => Promise.reject(Object.assign(new Error(), { code: 'ECONNREFUSED' })), {
        maxRetries: 0,
      }),
    );
    expect(of(channel, server.url).state).toBe('open');
    await until('one connection', () => server.openConnections === 1);
    held[0]?.();
    expect((await long).body).toBe('held');
  });

  it('close with the channel', async () => {
    const server = await start();
    const channel = channelTo([server.url]);
    await channel.execute(httpTry(), GET);
    expect(server.openConnections).toBe(1);
    channel.close();
    await until('no connection', () => server.openConnections === 0);
  });
});
