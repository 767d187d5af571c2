import {
  BreakerOpenError,
  createGuard,
  type ExecuteOptions,
  RejectedError,
  rejected,
  TimeoutError,
} from '@elimit/core';
import { SpyLimiter, settle, VirtualClock } from '@elimit/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeAll(() => void process.on('unhandledRejection', onUnhandled));
afterEach(async () => {
  await settle();
  if (unhandled.length > 0) throw new Error(`unhandled: ${String(unhandled[0])}`);
});
afterAll(() => void process.off('unhandledRejection', onUnhandled));

function make(limit = new SpyLimiter()) {
  const clock = new VirtualClock();
  const guard = createGuard({ limit, name: 'g', clock, timers: clock, registry: false });
  return { guard, clock, limiter: limit };
}

/** A call whose end is in the test's hands. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** An object that is no promise, but settles like one. */
function thenable(value: unknown): object {
  // oxlint-disable-next-line unicorn/no-thenable -- a thenable is the case
  const key = 'then';
  return { [key]: (settled: (value: unknown) => void) => settled(value) };
}

const outcomes = (limiter: SpyLimiter) => limiter.samples.map(({ outcome }) => outcome);
const boom = new Error('boom');
const refusal = {
  admitted: false,
  reason: 'concurrency',
  retryAfterMs: 100,
  name: 'inner',
} as const;

describe.each<{ with: string; options: ExecuteOptions | undefined }>([
  { with: 'no options', options: undefined },
  { with: 'a priority', options: { priority: 'critical' } },
  { with: 'a timeout', options: { timeoutMs: 1000 } },
  { with: 'a signal', options: { signal: new AbortController().signal } },
])('execute with $with', ({ options }) => {
  it.each<{ it: string; fn: () => unknown; value: unknown }>([
    { it: 'a value', fn: () => 7, value: 7 },
    { it: 'nothing', fn: () => undefined, value: undefined },
    { it: 'a promise', fn: () => Promise.resolve('x'), value: 'x' },
    { it: 'a thenable', fn: () => thenable(5), value: 5 },
  ])('hands on $it, as a success', async ({ fn, value }) => {
    const { guard, clock, limiter } = make();
    expect(await guard.execute(fn, options)).toBe(value);
    expect(outcomes(limiter)).toEqual(['success']);
    expect([guard.inflight, clock.pendingTimers]).toEqual([0, 0]);
  });

  it.each<{ it: string; error: unknown; outcome: string }>([
    { it: 'an error is a failure', error: boom, outcome: 'failure' },
    { it: 'undefined is a failure', error: undefined, outcome: 'failure' },
    { it: 'a string is a failure', error: 'no', outcome: 'failure' },
    { it: 'a frozen object is a failure', error: Object.freeze({}), outcome: 'failure' },
    { it: 'an inner refusal is ignored', error: rejected(refusal), outcome: 'ignored' },
    {
      it: 'an inner open breaker is ignored',
      error: new BreakerOpenError('b', 5),
      outcome: 'ignored',
    },
  ])('hands on what is thrown: $it', async ({ error, outcome }) => {
    for (const fn of [
      () => {
        throw error;
      },
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- odd reasons are the case
      () => Promise.reject(error),
    ]) {
      const { guard, clock, limiter } = make();
      await expect(guard.execute(fn, options)).rejects.toBe(error);
      expect(outcomes(limiter)).toEqual([outcome]);
      expect([guard.inflight, clock.pendingTimers]).toEqual([0, 0]);
    }
  });

  it('rejects without calling when refused', async () => {
    const { guard, clock } = make(new SpyLimiter(0));
    let called = false;
    const call = guard.execute(() => {
      called = true;
    }, options);
    const error = await call.catch((e: unknown) => e);
    expect(RejectedError.is(error)).toBe(true);
    expect(error).toMatchObject({ code: 'ERR_REJECTED', status: 503, brpcCode: 2004 });
    expect(error).toMatchObject({ rejection: { reason: 'concurrency', name: 'g' } });
    expect([called, clock.pendingTimers]).toEqual([false, 0]);
  });
});

describe('a timeout', () => {
  it('rejects the caller at once and aborts the work; the slot waits for the work', async () => {
    const { guard, clock, limiter } = make();
    const work = deferred<string>();
    let signal: AbortSignal | undefined;
    const call = guard.execute(
      (context) => {
        signal = context.signal;
        return work.promise;
      },
      { timeoutMs: 100 },
    );
    const error = call.catch((e: unknown) => e);
    await clock.advanceMsAsync(100);
    expect(await error).toMatchObject({
      code: 'ERR_TIMEOUT',
      timeoutMs: 100,
      message: 'g took longer than 100 ms',
    });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toBe(await error);
    expect([guard.inflight, clock.pendingTimers]).toEqual([1, 0]);
    await clock.advanceMsAsync(50);
    work.resolve('late');
    await settle();
    expect(guard.inflight).toBe(0);
    expect(limiter.samples).toMatchObject([{ outcome: 'failure', latencyUs: 150_000 }]);
  });

  it('leaves no rejection of the late work behind', async () => {
    const { guard, clock, limiter } = make();
    const work = deferred<string>();
    const error = guard.execute(() => work.promise, { timeoutMs: 1 }).catch((e: unknown) => e);
    await clock.advanceMsAsync(1);
    work.reject(boom);
    expect(TimeoutError.is(await error)).toBe(true);
    await settle();
    expect(outcomes(limiter)).toEqual(['failure']);
  });

  it('is the deadline that the engine is asked with', async () => {
    const { guard, limiter } = make();
    await guard.execute(() => 1, { timeoutMs: 250 });
    expect(limiter.questions[0]?.remainingUs).toBe(250_000);
  });

  it('of 0 has passed', async () => {
    const { guard } = make();
    await expect(guard.execute(() => 1, { timeoutMs: 0 })).rejects.toMatchObject({
      rejection: { reason: 'deadline' },
    });
  });

  it('shows in a signal that is read only afterwards', async () => {
    const { guard, clock } = make();
    const gate = deferred<void>();
    const late = deferred<AbortSignal>();
    const error = guard
      .execute(
        async (context) => {
          await gate.promise;
          late.resolve(context.signal);
        },
        { timeoutMs: 5 },
      )
      .catch((e: unknown) => e);
    await clock.advanceMsAsync(5);
    gate.resolve();
    expect((await late.promise).reason).toBe(await error);
  });

  it('stops one call of ten, and that one only', async () => {
    const { guard, clock } = make();
    const aborted: number[] = [];
    const ends = Array.from({ length: 10 }, () => deferred<number>());
    const calls = ends.map(({ promise }, i) =>
      guard
        .execute(
          ({ signal }) => {
            signal.addEventListener('abort', () => void aborted.push(i));
            return promise;
          },
          { timeoutMs: i === 3 ? 10 : 1000 },
        )
        .catch((error: unknown) => (error as { code: string }).code),
    );
    await clock.advanceMsAsync(10);
    for (const [i, { resolve }] of ends.entries()) resolve(i);
    expect(await Promise.all(calls)).toEqual([0, 1, 2, 'ERR_TIMEOUT', 4, 5, 6, 7, 8, 9]);
    expect([aborted, guard.inflight, clock.pendingTimers]).toEqual([[3], 0, 0]);
  });
});

describe('a caller’s signal', () => {
  it('that has aborted before keeps the call from being made', async () => {
    const { guard, limiter } = make();
    const reason = new Error('gone');
    await expect(guard.execute(() => 1, { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(limiter.questions).toEqual([]);
  });

  it('that aborts rejects at once with its reason; the call counts as abandoned when it ends', async () => {
    const { guard, clock, limiter } = make();
    const caller = new AbortController();
    const work = deferred<void>();
    const reason = new Error('gone');
    const call = guard.execute(() => work.promise, { signal: caller.signal, timeoutMs: 1000 });
    const error = call.catch((e: unknown) => e);
    caller.abort(reason);
    expect(await error).toBe(reason);
    expect([guard.inflight, clock.pendingTimers]).toEqual([1, 0]);
    clock.advanceMs(20);
    work.reject(reason); // obeys its signal
    await settle();
    expect(limiter.samples).toMatchObject([{ outcome: 'abandoned', latencyUs: 20_000 }]);
    expect(guard.inflight).toBe(0);
  });

  it('shared by many calls gets one listener, and reaches those alone that still run', async () => {
    const { guard } = make();
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const caller = new AbortController();
    const done = Array.from({ length: 50 }, () => guard.execute(settle, { signal: caller.signal }));
    await Promise.all(done);
    const works = Array.from({ length: 50 }, () => deferred<void>());
    const calls = works.map(({ promise }) =>
      guard.execute(() => promise, { signal: caller.signal }).catch((reason: unknown) => reason),
    );
    caller.abort('all');
    expect(await Promise.all(calls)).toEqual(works.map(() => 'all'));
    for (const { resolve } of works) resolve();
    await settle();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect(guard.snapshot().outcomes).toMatchObject({ success: 50, abandoned: 50 });
  });

  it('may be aborted by the function itself', async () => {
    const { guard, limiter } = make();
    const caller = new AbortController();
    const call = guard.execute(() => caller.abort('self'), { signal: caller.signal });
    await expect(call).rejects.toBe('self');
    await settle();
    expect(outcomes(limiter)).toEqual(['abandoned']);
  });
});

describe('nested guards', () => {
  it('tell an inner refusal apart: the outer one ignores it', async () => {
    const outer = make();
    const inner = make(new SpyLimiter(0));
    await expect(outer.guard.execute(() => inner.guard.execute(() => 1))).rejects.toMatchObject({
      rejection: { name: 'g' },
    });
    expect(outer.guard.snapshot().outcomes).toEqual({
      success: 0,
      failure: 0,
      ignored: 1,
      abandoned: 0,
    });
  });
});

describe('bad options of execute', () => {
  it.each<[unknown, RegExp]>([
    [null, /execute options must be an object, got null/],
    [{ timeoutMs: -1 }, /execute\.timeoutMs must be a number of at least 0, got -1/],
    [{ timeoutMs: Number.NaN }, /execute\.timeoutMs must be a number of at least 0, got NaN/],
    [{ timeoutMs: '5' }, /execute\.timeoutMs must be a number of at least 0, got "5"/],
    [
      { priority: 'high' },
      /execute\.priority must be one of critical, default, sheddable, got "high"/,
    ],
    [{ signal: 'stop' }, /execute\.signal must be an object, got "stop"/],
    [{ timeout: 5 }, /execute\.timeout is not an option; known: timeoutMs, signal, priority/],
  ])('%j reject and take no slot', async (options, message) => {
    const { guard, limiter } = make();
    await expect(guard.execute(() => 1, options as ExecuteOptions)).rejects.toThrow(message);
    expect(limiter.questions).toEqual([]);
  });
});

describe('wrap', () => {
  it('keeps this, arguments, name and length', async () => {
    const { guard, limiter } = make();
    const service = {
      factor: 3,
      times: guard.wrap(async function times(this: { factor: number }, a: number, b: number) {
        await settle();
        return this.factor * a * b;
      }),
    };
    expect(await service.times(2, 5)).toBe(30);
    expect([service.times.name, service.times.length]).toEqual(['times', 2]);
    expect(outcomes(limiter)).toEqual(['success']);
  });

  it('passes its options to every call', async () => {
    const { guard, clock } = make();
    const slow = guard.wrap(() => new Promise<never>(() => {}), { timeoutMs: 10 });
    const errors = [slow(), slow()].map((call) =>
      call.catch((e: unknown) => (e as { code: string }).code),
    );
    await clock.advanceMsAsync(10);
    expect(await Promise.all(errors)).toEqual(['ERR_TIMEOUT', 'ERR_TIMEOUT']);
  });

  it('wants a function', () => {
    expect(() => make().guard.wrap(5 as never)).toThrow(/wrap must be a function, got 5/);
  });
});
