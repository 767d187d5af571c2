import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  BreakerOpenError,
  CircuitBreaker,
  type CircuitBreakerOptions,
  createCircuitBreaker,
  createGuard,
  createRegistry,
  type ElimitEvent,
  TimeoutError,
} from '@elimit/core';
import { settle, VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';

function make(options: CircuitBreakerOptions = {}) {
  const clock = new VirtualClock();
  const events: ElimitEvent[] = [];
  const breaker = new CircuitBreaker({
    name: 'b',
    clock,
    timers: clock,
    random: () => 0, // isolations at the lower end of their jitter: 100 ms at first
    registry: false,
    onEvent: (event) => void events.push(event),
    ...options,
  });
  return { breaker, clock, events };
}

const fail = () => Promise.reject(new Error('down'));
const never = () => new Promise<never>(() => {});
/** Rejects with anything, as foreign code may. */
async function rejectWith(reason: unknown): Promise<never> {
  await Promise.resolve();
  throw reason;
}
/** What a promise is rejected with; looked after at once, so that it may settle at any time. */
const reasonOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => ({ resolved: value }),
    (reason: unknown) => reason,
  );

async function open(breaker: CircuitBreaker): Promise<void> {
  for (let i = 0; i < 5; i++) await expect(breaker.execute(fail)).rejects.toThrow('down');
  expect(breaker.state).toBe('open');
}

const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
afterEach(async () => {
  await settle();
  if (unhandled.length > 0) throw unhandled.splice(0)[0];
});

describe('execute', () => {
  it("gives the value, a thenable's value, or undefined", async () => {
    const { breaker } = make();
    await expect(breaker.execute(() => 7)).resolves.toBe(7);
    await expect(breaker.execute(() => undefined)).resolves.toBeUndefined();
    // oxlint-disable-next-line unicorn/no-thenable -- a thenable is what is tested
    const thenable = Object.defineProperty({}, 'then', {
      value: (resolve: (value: number) => void) => resolve(8),
    });
    await expect(breaker.execute(() => thenable as Promise<number>)).resolves.toBe(8);
    expect(breaker.snapshot().outcomes).toEqual({
      success: 3,
      failure: 0,
      ignored: 0,
      abandoned: 0,
    });
  });

  it('refuses while open, with a code, and does not call the function', async () => {
    const { breaker } = make();
    await open(breaker);
    let called = false;
    const error: unknown = await breaker
      .execute(() => (called = true))
      .catch((reason: unknown) => reason);
    expect(BreakerOpenError.is(error)).toBe(true);
    expect(error).toMatchObject({
      code: 'ERR_BREAKER_OPEN',
      brpcCode: 112,
      status: 503,
      breaker: 'b',
      retryAfterMs: 100,
    });
    expect(called).toBe(false);
    expect(breaker.snapshot()).toMatchObject({
      state: 'open',
      opened: 1,
      rejected: 1,
      isolationLeftMs: 100,
      isolationMs: 100,
    });
  });

  it("counts a timeout as a failure, aborts the call's signal, and ignores what comes later", async () => {
    const { breaker, clock } = make();
    let reject: (reason: Error) => void = () => {};
    let signal: AbortSignal | undefined;
    const call = breaker.execute(
      (context) => {
        signal = context.signal;
        return new Promise((_resolve, no) => {
          reject = no;
        });
      },
      { timeoutMs: 50 },
    );
    const reason = reasonOf(call);
    clock.advanceMs(50);
    expect(await reason).toMatchObject({
      message: 'b took longer than 50 ms',
      code: 'ERR_TIMEOUT',
    });
    expect(signal?.aborted).toBe(true);
    expect(TimeoutError.is(signal?.reason)).toBe(true);
    reject(new Error('too late')); // unhandled if nobody looked after it
    await settle();
    expect(breaker.snapshot().outcomes).toEqual({
      success: 0,
      failure: 1,
      ignored: 0,
      abandoned: 0,
    });
    expect(clock.pendingTimers).toBe(0);
  });

  it("rejects at once with the caller's reason, held against nobody", async () => {
    const { breaker, clock } = make();
    const controller = new AbortController();
    const call = breaker.execute(never, {
      signal: controller.signal,
      timeoutMs: 1000,
      fallback: () => 'no',
    });
    const reason = new Error('user left');
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect(breaker.execute(never, { signal: controller.signal })).rejects.toBe(reason);
    expect(breaker.snapshot().outcomes).toEqual({
      success: 0,
      failure: 0,
      ignored: 0,
      abandoned: 1,
    });
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes AbortSignal.timeout for what it is: the answer took too long', async () => {
    const { breaker } = make();
    await expect(breaker.execute(never, { signal: AbortSignal.timeout(1) })).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    expect(breaker.snapshot().outcomes.failure).toBe(1);
  });

  it.each<{ it: string; options: object; message: string }>([
    {
      it: 'a timeout of 0',
      options: { timeoutMs: 0 },
      message: 'execute.timeoutMs must be a number',
    },
    {
      it: 'a timeout of NaN',
      options: { timeoutMs: Number.NaN },
      message: 'execute.timeoutMs must be a number',
    },
    {
      it: 'a fallback that is no function',
      options: { fallback: 1 },
      message: 'execute.fallback must be a function, got 1',
    },
    {
      it: 'a signal that is none',
      options: { signal: {} },
      message: 'execute.signal.addEventListener must be a function',
    },
    {
      it: 'an option that is none',
      options: { timeout: 800 },
      message: 'execute.timeout is not an option; known: signal, timeoutMs, fallback',
    },
  ])('refuses $it, and to wrap with it', async ({ options, message }) => {
    const { breaker } = make();
    await expect(breaker.execute(() => 1, options as never)).rejects.toThrow(message);
    expect(() => breaker.wrap(() => 1, options as never)).toThrow(message);
  });

  it('keeps no timer once the calls have settled', async () => {
    const { breaker, clock } = make({ timeoutMs: 100 });
    await breaker.execute(() => 1);
    await expect(breaker.execute(fail)).rejects.toThrow('down');
    expect(clock.pendingTimers).toBe(0);
    await open(make({ timeoutMs: 100, clock, timers: clock }).breaker);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('what counts', () => {
  const headers = new Headers({ 'x-bd-error-code': '2004' });
  it.each<{ it: string; settles: () => unknown; counts: string }>([
    {
      it: 'a synchronous exception',
      settles: () => {
        throw new Error('sync');
      },
      counts: 'failure',
    },
    {
      it: 'a rejection with undefined',
      settles: () => rejectWith(undefined),
      counts: 'failure',
    },
    { it: 'a rejection with a string', settles: () => rejectWith('down'), counts: 'failure' },
    {
      it: 'a rejection with a frozen object',
      settles: () => rejectWith(Object.freeze({})),
      counts: 'failure',
    },
    {
      it: 'an error that cannot be looked at',
      settles: () =>
        rejectWith(
          new Proxy(
            {},
            {
              get: () => {
                throw new Error('trap');
              },
              has: () => false,
            },
          ),
        ),
      counts: 'failure',
    },
    {
      it: 'a lost connection',
      settles: () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' })),
      counts: 'failure',
    },
    {
      it: 'a timeout of the client itself',
      settles: () => Promise.reject(new DOMException('slow', 'TimeoutError')),
      counts: 'failure',
    },
    { it: 'a resolved 503', settles: () => new Response('', { status: 503 }), counts: 'failure' },
    { it: 'a resolved 404', settles: () => new Response('', { status: 404 }), counts: 'success' },
    {
      it: 'a 429 with Retry-After',
      settles: () => new Response('', { status: 429, headers: { 'retry-after': '9' } }),
      counts: 'success',
    },
    {
      it: 'a rejected 404, as axios has it',
      settles: () => Promise.reject(Object.assign(new Error('404'), { response: { status: 404 } })),
      counts: 'success',
    },
    {
      it: 'a rejected 500, as axios has it',
      settles: () => Promise.reject(Object.assign(new Error('500'), { response: { status: 500 } })),
      counts: 'failure',
    },
    {
      it: 'a resolved 503 marked ELIMIT',
      settles: () => new Response('', { status: 503, headers }),
      counts: 'ignored',
    },
    {
      it: 'a rejected 503 marked ELIMIT',
      settles: () =>
        Promise.reject(
          Object.assign(new Error('503'), {
            response: { status: 503, headers: { 'x-bd-error-code': '2004' } },
          }),
        ),
      counts: 'ignored',
    },
    {
      it: 'a fetch cancelled by its own code',
      settles: () => Promise.reject(new DOMException('gone', 'AbortError')),
      counts: 'abandoned',
    },
    {
      it: 'a cancel of axios',
      settles: () => Promise.reject(Object.assign(new Error('canceled'), { code: 'ERR_CANCELED' })),
      counts: 'abandoned',
    },
    {
      it: 'a result with a status that is no number',
      settles: () => ({ status: 'paid' }),
      counts: 'success',
    },
  ])('$it: $counts', async ({ settles, counts }) => {
    const { breaker } = make();
    await breaker.execute(settles).catch(() => {});
    await breaker.execute(settles, { timeoutMs: 100 }).catch(() => {}); // the other path
    expect(breaker.snapshot().outcomes).toEqual({
      success: 0,
      failure: 0,
      ignored: 0,
      abandoned: 0,
      [counts]: 2,
    });
  });

  it('lets isFailure decide about errors and results, and takes one that throws for true', async () => {
    const seen: unknown[] = [];
    const { breaker } = make({
      isFailure: (settled) => {
        seen.push(settled);
        if (settled === 'throw') throw new Error('bug');
        return settled === 404;
      },
    });
    for (const value of [404, 500, 'throw']) await breaker.execute(() => value);
    await breaker.execute(() => rejectWith('x')).catch(() => {});
    expect(seen).toEqual([404, 500, 'throw', 'x']);
    expect(breaker.snapshot().outcomes).toEqual({
      success: 2,
      failure: 2,
      ignored: 0,
      abandoned: 0,
    });
  });

  it('ignores the refusal of an inner guard and of an inner breaker, also with isFailure', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    guard.tryAcquire();
    const inner = make().breaker;
    inner.forceOpen();
    for (const isFailure of [undefined, () => true]) {
      const { breaker } = make({ isFailure });
      for (let i = 0; i < 50; i++) {
        await expect(breaker.execute(() => guard.execute(() => 1))).rejects.toMatchObject({
          code: 'ERR_REJECTED',
        });
        await expect(breaker.execute(() => inner.execute(() => 1))).rejects.toMatchObject({
          code: 'ERR_BREAKER_OPEN',
        });
      }
      expect(breaker.state).toBe('closed');
      expect(breaker.snapshot().outcomes.ignored).toBe(100);
    }
  });
});

describe('fallback', () => {
  it.each<{ it: string; fallback: (error: unknown) => unknown; gives: unknown }>([
    { it: 'a value', fallback: () => 'cached', gives: 'cached' },
    {
      it: 'a slow value',
      fallback: async () => {
        await settle();
        return 'slow';
      },
      gives: 'slow',
    },
  ])('answers with $it when the call fails, once', async ({ fallback, gives }) => {
    const { breaker } = make();
    const errors: unknown[] = [];
    const options = {
      fallback: (error: unknown) => {
        errors.push(error);
        return fallback(error);
      },
    };
    await expect(breaker.execute(fail, options)).resolves.toBe(gives);
    breaker.forceOpen();
    await expect(breaker.execute(() => 1, options)).resolves.toBe(gives);
    expect(errors.map((error) => (error as Error).message)).toEqual([
      'down',
      'breaker b is open; retry in 100 ms',
    ]);
  });

  it('passes its own error on, thrown or rejected, and is not asked again', async () => {
    const { breaker } = make();
    let asked = 0;
    const thrown = () => {
      asked += 1;
      throw new Error('fallback');
    };
    const rejected = () => {
      asked += 1;
      return Promise.reject(new Error('fallback'));
    };
    await expect(breaker.execute(fail, { fallback: thrown })).rejects.toThrow('fallback');
    await expect(breaker.execute(fail, { fallback: rejected })).rejects.toThrow('fallback');
    expect(asked).toBe(2);
    expect(breaker.snapshot().outcomes.failure).toBe(2);
  });
});

describe('half-open', () => {
  it('ends a trial call that never settles at its deadline; the next follows, others fail fast meanwhile', async () => {
    const { breaker, clock } = make({ trialTimeoutMs: 500 });
    await open(breaker);
    clock.advanceMs(100);
    let signal: AbortSignal | undefined;
    const hung = breaker.execute((context) => {
      signal = context.signal;
      return never();
    });
    const reason = reasonOf(hung);
    await expect(breaker.execute(() => 1)).rejects.toMatchObject({ code: 'ERR_BREAKER_OPEN' });
    clock.advanceMs(500);
    expect(await reason).toMatchObject({
      message: 'b took longer than 500 ms',
      code: 'ERR_TIMEOUT',
    });
    expect(signal?.aborted).toBe(true);
    expect(breaker.state).toBe('open');
    expect(clock.pendingTimers).toBe(0);
    clock.advanceMs(200);
    await expect(breaker.execute(() => 2)).resolves.toBe(2);
  });

  it('tells each change once, in order, and counts refusals', async () => {
    const { breaker, clock, events } = make({ halfOpenWindowSize: 1 });
    const told: string[] = [];
    for (const event of ['open', 'halfOpen', 'close', 'reject'] as const) {
      breaker.on(event, ({ name, cause, forMs }) =>
        told.push(`${event} ${name} ${cause} ${forMs}`),
      );
    }
    await open(breaker);
    await breaker.execute(() => 1).catch(() => {});
    await breaker.execute(() => 1).catch(() => {});
    clock.advanceMs(100);
    await breaker.execute(() => 1);
    expect(told).toEqual([
      'open b errorCost 100',
      'reject b open 100',
      'reject b open 100',
      'halfOpen b timer 0',
      'close b trial 0',
    ]);
    expect(events).toEqual([
      { type: 'open', name: 'b', cause: 'errorCost', isolationMs: 100 },
      { type: 'reject', name: 'b', reason: 'open', count: 1 }, // the second within the same second is kept for the next
      { type: 'halfOpen', name: 'b', cause: 'timer', isolationMs: 0 },
      { type: 'close', name: 'b', cause: 'trial', isolationMs: 0 },
    ]);
  });

  it('lets listeners call back in, throw, and leave', async () => {
    const { breaker } = make({
      onEvent: () => {
        throw new Error('listener');
      },
    });
    let heard = 0;
    const off = breaker.on('open', () => {
      heard += 1;
      breaker.reset();
      throw new Error('listener');
    });
    for (let i = 0; i < 5; i++) await expect(breaker.execute(fail)).rejects.toThrow('down');
    expect(breaker.state).toBe('closed'); // reset by the listener
    off();
    await open(breaker);
    expect(heard).toBe(1);
    expect(() => breaker.on('opened' as never, () => {})).toThrow(
      'breaker.on takes open, halfOpen, close, reject, got "opened"',
    );
  });
});

describe('late results', () => {
  it.each(['fail', 'succeed'])(
    '20 in flight, 5 fail and isolate, 15 %s later: one open event, nothing else',
    async (later) => {
      const { breaker, clock, events } = make({ rampMs: 0 });
      const calls = Array.from({ length: 20 }, () => {
        let end: (well: boolean) => void = () => {};
        const done = breaker
          .execute(
            () =>
              new Promise((resolve, reject) => {
                end = (well) => (well ? resolve(1) : reject(new Error('late')));
              }),
          )
          .catch(() => {});
        return { done, end: (well: boolean) => end(well) };
      });
      for (const call of calls.splice(0, 5)) call.end(false);
      await settle();
      for (const call of calls.splice(0, 7)) call.end(later === 'succeed');
      await settle();
      clock.advanceMs(100);
      for (let i = 0; i < 3; i++) await breaker.execute(() => 1); // half-open, then closed
      for (const call of calls) call.end(later === 'succeed');
      await settle();
      expect(events.map(({ type }) => type)).toEqual(['open', 'halfOpen', 'close']);
      expect(breaker.state).toBe('closed');
    },
  );
});

describe('the rest', () => {
  it('closes only the socket of the call that timed out, of ten on one breaker', async () => {
    const closed: string[] = [];
    const waiting: (() => void)[] = [];
    const server = createServer((req, res) => {
      res.on('close', () => {
        if (!res.writableFinished) closed.push(req.url ?? '');
      });
      waiting.push(() => res.end('ok'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const get = (path: string, signal: AbortSignal) =>
      new Promise<number>((resolve, reject) => {
        request({ host: '127.0.0.1', port, path, signal, agent: false }, (res) => {
          res.resume();
          res.on('end', () => resolve(res.statusCode ?? 0));
        })
          .on('error', reject)
          .end();
      });
    const { breaker, clock } = make();
    const slow = breaker.execute(({ signal }) => get('/slow', signal), { timeoutMs: 50 });
    const reason = reasonOf(slow);
    const others = Array.from({ length: 9 }, (_, i) =>
      breaker.execute(({ signal }) => get(`/${i}`, signal), { timeoutMs: 60_000 }),
    );
    while (waiting.length < 10) await settle();
    clock.advanceMs(50);
    expect(await reason).toMatchObject({ code: 'ERR_TIMEOUT' });
    while (closed.length === 0) await settle();
    for (const answer of waiting) answer();
    await expect(Promise.all(others)).resolves.toEqual(Array(9).fill(200));
    expect(closed).toEqual(['/slow']);
    server.close();
    await once(server, 'close');
  });

  it('wraps a function: this, arguments, name and length', async () => {
    const { breaker } = make();
    const service = {
      base: 10,
      add: breaker.wrap(function add(this: { base: number }, a: number, b: number) {
        return this.base + a + b;
      }),
    };
    await expect(service.add(1, 2)).resolves.toBe(13);
    expect([service.add.name, service.add.length]).toEqual(['add', 2]);
  });

  it('is listed in its registry, with live flags', () => {
    const registry = createRegistry();
    const breaker = createCircuitBreaker({ registry, name: 'listed' });
    const [source] = registry.sources();
    expect(source).toBe(breaker);
    source?.configure?.({ minCalls: 50, timeoutMs: 800 });
    const flags = Object.fromEntries(
      (source?.flags?.() ?? []).map(({ name, value }) => [name, value]),
    );
    expect(flags).toMatchObject({ minCalls: 50, timeoutMs: 800, shortWindowSize: 8 });
    expect(() => breaker.configure({ timeoutMs: -1 })).toThrow(RangeError);
    expect(() => breaker.configure({ minCalls: 0 })).toThrow(RangeError);
    expect(breaker.snapshot()).toMatchObject({
      type: 'breaker',
      name: 'listed',
      state: 'closed',
      rampRatio: 1,
      opened: 0,
    });
  });

  it('times every good call at first, then one in eight', async () => {
    let reads = 0;
    const { breaker } = make({ clock: { nowUs: () => (reads += 1) } });
    for (let i = 0; i < 256; i++) await breaker.execute(() => 1);
    expect(reads).toBe(512);
    for (let i = 0; i < 80; i++) await breaker.execute(() => 1);
    expect(reads).toBe(512 + 80 + 10);
    expect(breaker.snapshot().outcomes.success).toBe(336);
  });

  it('times every good call where they are rare: the cost fades as time goes by', async () => {
    let reads = 0;
    const { breaker } = make({ clock: { nowUs: () => ++reads * 1_000_000 } });
    for (let i = 0; i < 400; i++) await breaker.execute(() => 1);
    expect(reads).toBe(800);
  });

  it('times the first good calls after it has closed again, however many there were before', async () => {
    let reads = 0;
    const { breaker } = make({ clock: { nowUs: () => (reads += 1) } });
    for (let i = 0; i < 257; i++) await breaker.execute(() => 1);
    breaker.forceOpen();
    breaker.reset();
    reads = 0;
    for (let i = 0; i < 20; i++) await breaker.execute(() => 1);
    expect(reads).toBe(40);
  });

  it.each<[object, string]>([
    [{ name: '' }, 'breaker.name must be a non-empty string'],
    [{ isFailure: 1 }, 'breaker.isFailure must be a function'],
    [{ timeoutMs: 0 }, 'breaker.timeoutMs must be a number'],
    [{ clock: {} }, 'breaker.clock.nowUs must be a function'],
    [{ onEvent: 'x' }, 'breaker.onEvent must be a function'],
    [{ registry: {} }, 'breaker.registry.add must be a function'],
    [
      { errorThresholdPercentage: 50 },
      'breaker.errorThresholdPercentage is not an option; known: name, isFailure, ',
    ],
  ])('%j is refused', (options, message) => {
    expect(() => new CircuitBreaker(options)).toThrow(message);
  });
});
