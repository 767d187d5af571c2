import { NoEndpointError } from '@elimit/client';
import { TimeoutError } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import {
  after,
  answer,
  endOf,
  fail,
  never,
  raise,
  refusal,
  virtualChannel,
} from './support/virtual-channel.js';

const GET = { method: 'GET' };
const POST = { method: 'POST' };

describe('one call', () => {
  it('gives what the function gives, by round robin', async () => {
    const { call, channel } = virtualChannel('abc');
    expect([await call(), await call(), await call(), await call()]).toEqual(['a', 'b', 'c', 'a']);
    channel.close();
  });

  it.each([undefined, null, 0])('takes %p as an answer', async (value) => {
    const { call, nodes } = virtualChannel('a');
    nodes.a = () => value;
    expect(await call()).toBe(value);
  });

  it.each([undefined, 'text', Object.freeze({ frozen: true })])(
    'rejects with %p as it was thrown',
    async (error) => {
      const { call, nodes, channel } = virtualChannel('a');
      nodes.a = raise(error);
      expect(await endOf(call(GET))).toBe(error);
      expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, recentErrors: 1 });
    },
  );

  it('hands out the time left, the attempt number and a clean set of headers', async () => {
    const { call, nodes, attempts, clock } = virtualChannel('ab');
    nodes.a = after(clock, 120, fail('ECONNRESET'));
    const end = call(GET);
    await clock.advanceMsAsync(120);
    expect(await end).toBe('b');
    expect(
      attempts.map(({ attempt, timeoutMs, headers, isBackup }) => [
        attempt,
        timeoutMs,
        headers,
        isBackup,
      ]),
    ).toEqual([
      [0, 500, { 'x-request-timeout-ms': '500' }, false],
      [1, 380, { 'x-request-timeout-ms': '380' }, false],
    ]);
    expect(attempts[0]?.headers).not.toBe(attempts[1]?.headers);
  });

  it('sends the time left under another name, or not at all', async () => {
    const named = virtualChannel('a', { deliverTimeout: 'X-Budget' });
    await named.call();
    expect(named.attempts[0]?.headers).toEqual({ 'x-budget': '500' });
    const silent = virtualChannel('a', { deliverTimeout: false });
    await silent.call();
    expect(silent.attempts[0]?.headers).toEqual({});
  });

  it("keeps a node's own Host unless one is set", async () => {
    const { call, attempts } = virtualChannel('', {
      nodes: [{ url: 'http://a', host: 'search.internal:80' }],
      deliverTimeout: false,
    });
    await call();
    expect(attempts[0]?.headers).toEqual({ host: 'search.internal:80' });
    expect(attempts[0]?.endpoint.name).toBe('http://a host=search.internal:80');
  });
});

describe('retries', () => {
  it('go to another node, and give the last error when all have failed', async () => {
    const { call, nodes, tries } = virtualChannel('abc');
    for (const letter of 'abc') nodes[letter] = fail('ECONNRESET', { from: letter });
    expect(await endOf(call(GET))).toMatchObject({ code: 'ECONNRESET', from: 'b' });
    expect(tries.join('')).toBe('abcb'); // one try and three retries, never twice in a row on one
  });

  it('take the node just tried only when there is no other', async () => {
    const { call, nodes, tries } = virtualChannel('a');
    nodes.a = fail('ECONNRESET');
    await endOf(call(GET));
    expect(tries.join('')).toBe('aaaa');
  });

  it.each([
    { it: 'a POST after a reset', behaviour: fail('ECONNRESET'), options: POST, tries: 'a' },
    {
      it: 'a POST after a reset, told to',
      behaviour: fail('ECONNRESET'),
      options: { ...POST, resend: true },
      tries: 'ab',
    },
    {
      it: 'a POST after a refused connection',
      behaviour: fail('ECONNREFUSED'),
      options: POST,
      tries: 'ab',
    },
    { it: 'a POST after a refusal', behaviour: refusal(), options: POST, tries: 'ab' },
    {
      it: 'a stream after a refusal',
      behaviour: refusal(),
      options: { method: 'PUT', replayable: false },
      tries: 'a',
    },
    { it: 'a GET after 500', behaviour: answer(500), options: GET, tries: 'a' },
    { it: 'a GET after 503', behaviour: answer(503), options: GET, tries: 'ab' },
    { it: 'a POST after a plain 503', behaviour: answer(503), options: POST, tries: 'a' },
    { it: 'a GET after 404', behaviour: answer(404), options: GET, tries: 'a' },
    {
      it: 'a GET after 429',
      behaviour: answer(429, { 'retry-after': '0' }),
      options: GET,
      tries: 'a',
    },
    { it: 'a GET after a bug', behaviour: fail('ERR_BUG'), options: GET, tries: 'a' },
    {
      it: 'a GET, but no retries are left',
      behaviour: fail('ECONNRESET'),
      options: { ...GET, maxRetries: 0 },
      tries: 'a',
    },
  ])('$it: tries $tries', async ({ behaviour, options, tries }) => {
    const bench = virtualChannel('ab');
    bench.nodes.a = behaviour;
    await endOf(bench.call(options));
    expect(bench.tries.join('')).toBe(tries);
  });

  it('follow a classify of the channel or of the call', async () => {
    const { call, nodes, tries } = virtualChannel('ab', {
      classify: ({ ok }) => ({ outcome: ok ? 'success' : 'failure', retriable: true }),
    });
    nodes.a = fail('ERR_APP');
    expect(await call({ resend: true })).toBe('b');
    await endOf(call({ resend: true, classify: () => ({ outcome: 'failure', retriable: false }) }));
    expect(tries.join('')).toBe('abb');
  });

  it('end the call with the error of a classify that throws', async () => {
    const { call, clock } = virtualChannel('a', {
      classify: () => {
        throw new Error('classify');
      },
    });
    expect(await endOf(call())).toMatchObject({ message: 'classify' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('are paid from a budget: 100 calls against an outage make at most 120 tries', async () => {
    const { call, nodes, tries } = virtualChannel('abc');
    for (const letter of 'abc') nodes[letter] = answer(503);
    for (let i = 0; i < 100; i++) await call(GET);
    // call n may spend what 10 + 0.1 × n still leaves; the last token comes with call 100
    expect(tries).toHaveLength(120);
  });

  it('cover nearly every one of 1 % failures', async () => {
    const { call, nodes } = virtualChannel('ab');
    let n = 0;
    nodes.a = () => ({ status: ++n % 50 === 0 ? 503 : 200, headers: {} });
    const ends = [];
    for (let i = 0; i < 1000; i++) ends.push(await call(GET));
    expect(ends.filter((end) => (end as { status?: number }).status === 503)).toHaveLength(0);
  });

  it('are bounded by nothing but maxRetries without a budget', async () => {
    const { call, nodes, tries } = virtualChannel('ab', { retryBudget: false });
    for (const letter of 'ab') nodes[letter] = answer(503);
    for (let i = 0; i < 100; i++) await call(GET);
    expect(tries).toHaveLength(400);
  });

  it('hand what the caller will not see to discard', async () => {
    const { call, nodes } = virtualChannel('ab');
    const discarded: unknown[] = [];
    nodes.a = answer(503, { from: 'a' });
    await call({ ...GET, discard: (end) => discarded.push(end) });
    expect(discarded).toEqual([{ ok: true, value: { status: 503, headers: { from: 'a' } } }]);
  });
});

describe('refusals', () => {
  it('move on at once, and make the node the last choice while it asks for it', async () => {
    const { call, nodes, tries, clock, channel } = virtualChannel('abc');
    nodes.a = refusal('2');
    expect(await call(GET)).toBe('b');
    for (let i = 0; i < 4; i++) await call(GET);
    expect(tries.join('').slice(2)).not.toContain('a');
    clock.advanceMs(2000);
    for (let i = 0; i < 6; i++) await call(GET);
    expect(tries.join('').slice(6)).toContain('a');
    expect(channel.endpoints()[0]).toMatchObject({
      refusals: 2,
      failures: 0,
      recentErrors: 0,
      nBreak: 0,
      meanLatencyUs: 0,
    });
  });

  it('never break a node, however many', async () => {
    const { call, nodes, state } = virtualChannel('a', { errorCost: true });
    nodes.a = refusal();
    for (let i = 0; i < 1000; i++) await call({ ...GET, maxRetries: 0 });
    expect(state('a')).toBe('closed');
  });

  it('never make a node look fast', async () => {
    const { call, nodes, tries, clock } = virtualChannel('ab', {
      balancer: 'leastLoaded',
      timeoutMs: 5000,
    });
    nodes.a = refusal('0');
    nodes.b = after(clock, 50);
    for (let i = 0; i < 3; i++) {
      const end = call(GET);
      await clock.advanceMsAsync(50);
      expect(await end).toBe('b');
    }
    // b, then each time a, which has no latency yet and goes first among equals; a refusal gives it none
    expect(tries.join('')).toBe('babab');
  });

  it('are waited out only where there is nobody else, inside the time left', async () => {
    const { call, nodes, tries, clock } = virtualChannel('a', { timeoutMs: 3000 });
    let n = 0;
    nodes.a = (attempt) => (n++ === 0 ? refusal('2')(attempt) : 'later');
    const end = call(POST);
    await clock.advanceMsAsync(999); // 2 s on the wire: between one and two
    expect(tries.join('')).toBe('a');
    await clock.advanceMsAsync(1);
    expect(await end).toBe('later');
  });

  it.each(['86400', 'abc', '1e12', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'come back as they are if the wait (%s) does not fit, or is retried at the usual pause',
    async (retryAfter) => {
      const { call, nodes, clock } = virtualChannel('a');
      nodes.a = refusal(retryAfter);
      const end = call(GET);
      await clock.advanceMsAsync(500);
      expect(await end).toMatchObject({ status: 503 });
      expect(clock.pendingTimers).toBe(0);
    },
  );

  it('cap Retry-After: a day makes the node the last choice for ten seconds', async () => {
    const { call, nodes, tries, clock } = virtualChannel('ab');
    nodes.a = refusal('86400');
    await call(GET);
    nodes.a = () => 'a';
    clock.advanceMs(9_999);
    await call(GET);
    await call(GET);
    expect(tries.join('')).toBe('abbb');
    clock.advanceMs(1);
    await call(GET);
    await call(GET);
    expect(tries.join('').slice(4)).toContain('a');
  });

  it('end a pause at once when the caller leaves, with its reason', async () => {
    const { call, nodes, clock } = virtualChannel('a', { timeoutMs: 3000 });
    nodes.a = refusal('2');
    const control = new AbortController();
    const end = call({ ...GET, signal: control.signal });
    await clock.advanceMsAsync(100);
    control.abort(new Error('I left'));
    expect(await endOf(end)).toMatchObject({ message: 'I left' });
    expect(clock.pendingTimers).toBe(0);
  });

  it('are believed from listed nodes only', async () => {
    const { call, nodes, channel } = virtualChannel('a');
    nodes.x = refusal();
    await call({ ...POST, origin: 'http://x' });
    expect(channel.endpoints()[1]).toMatchObject({
      origin: 'http://x',
      refusals: 0,
      failures: 1,
      calls: 1,
    });
  });
});

describe('time', () => {
  it('ends a call, its try and its signal when the total is over', async () => {
    const { call, nodes, attempts, clock, channel } = virtualChannel('ab');
    nodes.a = never;
    const end = call(GET);
    await clock.advanceMsAsync(499);
    expect(attempts[0]?.signal.aborted).toBe(false);
    await clock.advanceMsAsync(1);
    const error = await endOf(end);
    expect(TimeoutError.is(error)).toBe(true);
    expect(error).toMatchObject({ code: 'ERR_TIMEOUT', timeoutMs: 500 });
    expect(attempts[0]?.signal.reason).toBe(error);
    expect(attempts).toHaveLength(1); // a hung node is not retried without tryTimeoutMs
    expect(channel.endpoints()[0]).toMatchObject({ failures: 1, inflight: 0 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('moves on from a hung node after tryTimeoutMs', async () => {
    const { call, nodes, attempts, clock } = virtualChannel('ab', { tryTimeoutMs: 210 });
    nodes.a = never;
    const end = call(GET);
    await clock.advanceMsAsync(210);
    expect(await end).toBe('b');
    expect(attempts.map(({ timeoutMs }) => timeoutMs)).toEqual([210, 210]);
    expect(attempts[0]?.signal.reason).toMatchObject({ code: 'ERR_TIMEOUT', timeoutMs: 210 });
  });

  it('is total: nodes that answer after 900 ms or never, three retries, 1 s', async () => {
    const { call, nodes, tries, clock } = virtualChannel('abc', {
      timeoutMs: 1000,
      tryTimeoutMs: 400,
    });
    nodes.a = after(clock, 900);
    nodes.b = never;
    nodes.c = never;
    const end = call(GET);
    await clock.advanceMsAsync(1000);
    expect(await endOf(end)).toMatchObject({ code: 'ERR_TIMEOUT', timeoutMs: 1000 });
    expect(tries.join('')).toBe('abc'); // 400 + 400 + 200
    await clock.advanceMsAsync(1000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('may be set for one call', async () => {
    const { call, nodes, attempts, clock } = virtualChannel('a');
    nodes.a = never;
    const end = call({ timeoutMs: 50 });
    await clock.advanceMsAsync(50);
    expect(await endOf(end)).toMatchObject({ timeoutMs: 50 });
    expect(attempts[0]?.headers).toEqual({ 'x-request-timeout-ms': '50' });
  });

  it('is shortened, never lengthened, by a carried deadline', async () => {
    const { call, attempts } = virtualChannel('a');
    await call({ carriedTimeoutMs: 80 });
    await call({ carriedTimeoutMs: 8000 });
    expect(attempts.map(({ timeoutMs }) => timeoutMs)).toEqual([80, 500]);
  });

  it("makes a timeout by a carried deadline nobody's failure", async () => {
    const { call, nodes, clock, channel, state } = virtualChannel('a', { errorCost: true });
    nodes.a = never;
    for (let i = 0; i < 50; i++) {
      const end = call({ carriedTimeoutMs: 30 });
      await clock.advanceMsAsync(30);
      expect(await endOf(end)).toMatchObject({ code: 'ERR_TIMEOUT' });
    }
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, recentErrors: 0 });
    expect(state('a')).toBe('closed');
  });

  it("makes a 504 of a node that was hurried by a carried deadline nobody's failure", async () => {
    const { call, nodes, channel } = virtualChannel('a', { errorCost: true });
    nodes.a = () => ({ status: 504 });
    for (let i = 0; i < 50; i++) await call({ carriedTimeoutMs: 30 });
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, recentErrors: 0 });
    await call();
    expect(channel.endpoints()[0]).toMatchObject({ failures: 1, recentErrors: 1 });
  });

  it('follows a try to another origin: its breaker is asked, its end is its own', async () => {
    const { call, nodes, channel, clock } = virtualChannel('ab', { errorCost: true });
    nodes.a = (attempt) => {
      clock.advanceMs(20);
      const next = attempt.redirected('http://c/x');
      expect(next.endpoint.url.origin).toBe('http://c');
      expect(channel.endpoints().map(({ inflight }) => inflight)).toEqual([0, 0, 1]);
      clock.advanceMs(30);
      throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    };
    expect(await endOf(call({ method: 'POST' }))).toMatchObject({ code: 'ECONNREFUSED' });
    expect(channel.endpoints()).toMatchObject([
      { origin: 'http://a', state: 'closed', failures: 0, meanLatencyUs: 20_000 },
      { origin: 'http://b', calls: 0 }, // a POST that was sent on is not begun again
      { origin: 'http://c', state: 'open', reason: 'refused', failures: 1, inflight: 0 },
    ]);
    nodes.a = (attempt) => attempt.redirected('http://c/x');
    nodes.b = nodes.a;
    expect(await endOf(call({ method: 'POST' }))).toMatchObject({ code: 'ERR_NO_ENDPOINT' });
  });

  it('counts an answer that broke off after its headers, once, unless the call was cancelled', async () => {
    const { call, nodes, channel, attempts } = virtualChannel('a', { errorCost: true });
    nodes.a = () => 'headers';
    await call();
    attempts[0]?.brokeOff(Object.assign(new Error(), { code: 'ECONNRESET' }));
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, recentErrors: 1 });
    await call();
    attempts[1]?.brokeOff(new DOMException('enough', 'AbortError'));
    expect(channel.endpoints()[0]).toMatchObject({ calls: 2, failures: 1 });
    const control = new AbortController();
    await call({ signal: control.signal });
    control.abort();
    attempts[2]?.brokeOff(Object.assign(new Error(), { code: 'ECONNRESET' }));
    expect(channel.endpoints()[0]).toMatchObject({ calls: 3, failures: 1 });
  });

  it('neither charges nor repeats a try that failed by the caller’s own fault, whatever classify says', async () => {
    const classify = () => ({ outcome: 'failure', retriable: true }) as const;
    const { call, nodes, channel, tries, attempts } = virtualChannel('ab', { classify });
    nodes.a = (attempt) => {
      attempt.callersFault();
      throw Object.assign(new Error('disk'), { code: 'ECONNRESET' });
    };
    expect(await endOf(call(GET))).toMatchObject({ message: 'disk' });
    expect(tries).toEqual(['a']);
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
    attempts[0]?.brokeOff(new Error('later'));
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0 });
  });

  it('does not charge a try that the end of the call’s time finds at the caller’s own fault', async () => {
    const { call, nodes, clock, channel } = virtualChannel('a');
    nodes.a = (attempt) => {
      attempt.signal.addEventListener('abort', () => attempt.callersFault());
      return never(attempt);
    };
    const end = call(GET);
    await clock.advanceMsAsync(500);
    expect(await endOf(end)).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });

  it.each([0, -5])('fails at once when the carried deadline is %d', async (carriedTimeoutMs) => {
    const { call, tries } = virtualChannel('a');
    expect(await endOf(call({ carriedTimeoutMs }))).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(tries).toEqual([]);
  });

  it('charges a node only if its try had a fair share of it', async () => {
    const { call, nodes, clock, channel } = virtualChannel('ab');
    nodes.a = after(clock, 400, fail('ECONNRESET'));
    nodes.b = never;
    const end = call(GET);
    await clock.advanceMsAsync(500);
    await endOf(end);
    expect(channel.endpoints().map(({ failures }) => failures)).toEqual([1, 0]); // b had 100 of 500 ms
  });
});

describe('cancels', () => {
  it("end that call only, with the caller's reason, and count for nothing", async () => {
    const { call, nodes, attempts, clock, channel } = virtualChannel('a');
    nodes.a = after(clock, 100);
    const control = new AbortController();
    const others = Array.from({ length: 9 }, () => call());
    const end = call({ signal: control.signal });
    control.abort('enough');
    expect(await endOf(end)).toBe('enough');
    expect(attempts.map(({ signal }) => signal.aborted)).toEqual([
      ...Array<boolean>(9).fill(false),
      true,
    ]);
    await clock.advanceMsAsync(100);
    expect(await Promise.all(others)).toHaveLength(9);
    expect(channel.endpoints()[0]).toMatchObject({ calls: 10, failures: 0, inflight: 0 });
  });

  it('stop a call before its first try', async () => {
    const { call, tries, clock } = virtualChannel('a');
    expect(await endOf(call({ signal: AbortSignal.abort('never mind') }))).toBe('never mind');
    expect(tries).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('backup requests', () => {
  const options = { backupRequestMs: 50 };

  it('ask a second node when the first is late, and the loser is cancelled without blame', async () => {
    const { call, nodes, attempts, clock, channel } = virtualChannel('ab', options);
    nodes.a = never;
    const end = call(GET);
    await clock.advanceMsAsync(50);
    expect(await end).toBe('b');
    expect(attempts.map(({ isBackup }) => isBackup)).toEqual([false, true]);
    expect(attempts[0]?.signal.reason).toMatchObject({ name: 'AbortError' });
    expect(channel.endpoints().map(({ failures, inflight }) => [failures, inflight])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('let the first answer win, from whichever side, and discard the other', async () => {
    const { call, nodes, clock } = virtualChannel('ab', options);
    const discarded: unknown[] = [];
    nodes.a = after(clock, 80);
    nodes.b = after(clock, 80);
    const end = call({ ...GET, discard: (ended) => discarded.push(ended) });
    await clock.advanceMsAsync(80);
    expect(await end).toBe('a');
    await clock.advanceMsAsync(80);
    expect(discarded).toEqual([{ ok: true, value: 'b' }]);
  });

  it('wait for the other one when one of the two fails', async () => {
    const { call, nodes, clock } = virtualChannel('ab', { ...options, maxRetries: 1 });
    nodes.a = after(clock, 70, answer(500));
    nodes.b = after(clock, 100);
    const end = call(GET);
    await clock.advanceMsAsync(150);
    expect(await end).toBe('b');
  });

  it.each([
    { it: 'a POST', letters: 'ab', call: POST, extra: {} },
    { it: 'a single node', letters: 'a', call: GET, extra: {} },
    { it: 'no retries left', letters: 'ab', call: { ...GET, maxRetries: 0 }, extra: {} },
    {
      it: 'an empty budget',
      letters: 'ab',
      call: GET,
      extra: { backupBudget: { ratio: 0, floor: 0 } },
    },
  ])('are not sent for $it', async ({ letters, call, extra }) => {
    const bench = virtualChannel(letters, { ...options, ...extra });
    bench.nodes.a = after(bench.clock, 100);
    const end = bench.call(call);
    await bench.clock.advanceMsAsync(100);
    expect(await end).toBe('a');
    expect(bench.tries.join('')).toBe('a');
  });

  it('use up one retry each, and their own budget', async () => {
    const { call, nodes, tries, clock } = virtualChannel('ab', {
      ...options,
      retryBudget: { ratio: 0, floor: 0 },
    });
    nodes.a = never;
    nodes.b = never;
    const end = call(GET);
    await clock.advanceMsAsync(500);
    expect(await endOf(end)).toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(tries.join('')).toBe('ab');
  });
});

describe('a balancer of the user', () => {
  it('must pick one of its candidates', async () => {
    const { call, clock } = virtualChannel('a', { balancer: { pick: () => ({}) as never } });
    expect(await endOf(call())).toMatchObject({
      message: 'channel.balancer.pick must return one of its candidates',
    });
    expect(clock.pendingTimers).toBe(0);
  });
});

it('says so when a call gets nobody', async () => {
  const { call, nodes } = virtualChannel('a', { name: 'search' });
  nodes.a = fail('ECONNREFUSED');
  expect(await endOf(call())).toMatchObject({ code: 'ECONNREFUSED' });
  const error = await endOf(call());
  expect(NoEndpointError.is(error)).toBe(true);
  expect(error).toMatchObject({
    code: 'ERR_NO_ENDPOINT',
    brpcCode: 112,
    status: 502, // as outboundFactsOf says, and so the adapters
    retryAfterMs: 100,
    endpoints: 1,
    origin: undefined,
    message:
      'channel search: none of 1 endpoints can be used now; the first isolation ends in 100 ms',
  });
  expect((error as Error).stack).toBe(`NoEndpointError: ${(error as Error).message}`); // none was captured
});
