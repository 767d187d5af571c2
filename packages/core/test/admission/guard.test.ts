import {
  createGuard,
  createRegistry,
  type ElimitEvent,
  type Entry,
  type GuardOptions,
  type Permit,
  type Rejection,
} from '@elimit/core';
import { SpyLimiter, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

const START_US = 1_000_000;

function make(options: GuardOptions = {}) {
  const clock = new VirtualClock(START_US);
  const limiter = new SpyLimiter();
  const events: ElimitEvent[] = [];
  const guard = createGuard({
    limit: limiter,
    name: 'g',
    clock,
    timers: clock,
    random: () => 0.5, // no jitter: the middle of ±20 %
    registry: false,
    onEvent: (event) => void events.push(event),
    ...options,
  });
  return { guard, clock, limiter, events };
}

function admitted(entry: Entry): Permit {
  if (!entry.admitted) throw new Error(`refused: ${entry.reason}`);
  return entry;
}

function refused(entry: Entry): Rejection {
  if (entry.admitted) throw new Error('admitted');
  return entry;
}

describe('a guard', () => {
  it('counts the asking call itself, and tells the engine the same number', () => {
    const { guard, limiter } = make();
    expect(admitted(guard.tryAcquire()).inflight).toBe(1);
    expect(admitted(guard.tryAcquire()).inflight).toBe(2);
    expect(limiter.questions.map(({ inflight }) => inflight)).toEqual([1, 2]);
    expect(limiter.starts.map(({ inflight }) => inflight)).toEqual([1, 2]);
    expect(guard.inflight).toBe(2);
  });

  it('times a call on its own clock, and releases it once', () => {
    const { guard, clock, limiter } = make();
    const permit = admitted(guard.tryAcquire());
    clock.advance(40_000);
    permit.release('success');
    permit.release('failure');
    permit.revoke('queue');
    expect(limiter.samples).toEqual([
      { outcome: 'success', latencyUs: 40_000, nowUs: START_US + 40_000, inflightAtStart: 1 },
    ]);
    expect(guard.inflight).toBe(0);
    expect(guard.snapshot()).toMatchObject({
      admitted: 1,
      revoked: 0,
      outcomes: { success: 1, failure: 0, ignored: 0, abandoned: 0 },
      rejected: { concurrency: 0, deadline: 0, queue: 0, server: 0, rate: 0 },
    });
  });

  it.each([
    { it: 'counts latency from the arrival', waitUs: 30_000, excludedUs: 0, latencyUs: 40_000 },
    {
      it: 'takes the client’s own time out',
      waitUs: 30_000,
      excludedUs: 25_000,
      latencyUs: 15_000,
    },
    { it: 'never gets below 0', waitUs: 0, excludedUs: 90_000, latencyUs: 0 },
    { it: 'cuts what is less than a microsecond', waitUs: 0, excludedUs: 0.5, latencyUs: 9_999 },
    {
      it: 'takes an arrival in the future as now',
      waitUs: -50_000,
      excludedUs: 0,
      latencyUs: 10_000,
    },
    {
      it: 'takes an arrival that is NaN as now',
      waitUs: Number.NaN,
      excludedUs: 0,
      latencyUs: 10_000,
    },
    { it: 'adds nothing for an exclusion below 0', waitUs: 0, excludedUs: -9, latencyUs: 10_000 },
    { it: 'excludes nothing for NaN', waitUs: 0, excludedUs: Number.NaN, latencyUs: 10_000 },
  ])('$it', ({ waitUs, excludedUs, latencyUs }) => {
    const { guard, clock, limiter } = make();
    const permit = admitted(guard.tryAcquire({ arrivedUs: START_US - waitUs }));
    clock.advance(10_000);
    permit.release('success', excludedUs);
    expect(limiter.samples[0]?.latencyUs).toBe(latencyUs);
    expect(guard.snapshot().latency.maxUs).toBe(latencyUs);
  });

  it('refuses as plain data, teaches the engine, and lets the next one in at once', () => {
    const limiter = new SpyLimiter(1);
    const { guard } = make({ limit: limiter });
    const permit = admitted(guard.tryAcquire());
    expect(guard.tryAcquire()).toEqual({
      admitted: false,
      reason: 'concurrency',
      retryAfterMs: 1000, // nothing has finished yet, so no rate is known
      name: 'g',
    });
    expect(limiter.refusals).toEqual([START_US]);
    permit.release('success');
    admitted(guard.tryAcquire());
  });

  it('keeps only served calls in its latencies', () => {
    const { guard, clock } = make();
    for (const outcome of ['success', 'failure', 'ignored', 'abandoned'] as const) {
      const permit = admitted(guard.tryAcquire());
      clock.advance(10);
      permit.release(outcome);
    }
    expect(guard.snapshot()).toMatchObject({
      outcomes: { success: 1, failure: 1, ignored: 1, abandoned: 1 },
      latency: { count: 2, meanUs: 10, maxUs: 10 },
    });
  });

  it('knows its oldest call, whatever the order of release', () => {
    const { guard, clock } = make();
    const permits = [1, 2, 3, 4].map(() => {
      const permit = admitted(guard.tryAcquire());
      clock.advance(1_000);
      return permit;
    });
    const age = () => guard.snapshot().oldestInflightMs;
    expect(age()).toBe(4);
    permits[1]?.release('success');
    expect(age()).toBe(4);
    permits[0]?.release('success');
    expect(age()).toBe(2); // the third is the oldest now
    permits[3]?.release('success');
    expect(age()).toBe(2);
    permits[2]?.release('success');
    expect(age()).toBe(0);
  });

  it('knows it among many calls, whose places are used again', () => {
    const { guard, clock } = make();
    const ages = () => guard.snapshot().oldestInflightMs;
    const held = new Map<number, Permit>();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 100; i++) {
        held.set(round * 100 + i, admitted(guard.tryAcquire()));
        clock.advance(1_000);
      }
      expect(ages()).toBe(100);
      // from the middle on, then the other half: the one that came first stays longest
      for (let i = 50; i < 100; i++) held.get(round * 100 + i)?.release('success');
      expect(ages()).toBe(100);
      for (let i = 0; i < 49; i++) held.get(round * 100 + i)?.release('success');
      expect(ages()).toBe(51); // the 50th came 49 ms after the first
      held.get(round * 100 + 49)?.release('success');
      expect(ages()).toBe(0);
    }
  });

  it('gives the rate of finished calls over the last seconds', () => {
    const { guard, clock } = make();
    for (let i = 0; i < 100; i++) {
      admitted(guard.tryAcquire()).release('success');
      clock.advance(10_000);
    }
    expect(guard.snapshot().qps).toBe(100); // 100 in 1 s
    clock.advanceMs(60_000);
    expect(guard.snapshot().qps).toBe(0);
  });
});

describe('a deadline', () => {
  it.each([
    { it: 'is not there', timeoutMs: undefined, remainingUs: Number.POSITIVE_INFINITY },
    { it: 'is 100 ms from an arrival 20 ms ago', timeoutMs: 100, remainingUs: 80_000 },
    { it: 'is NaN: no deadline', timeoutMs: Number.NaN, remainingUs: Number.POSITIVE_INFINITY },
    {
      it: 'is infinite',
      timeoutMs: Number.POSITIVE_INFINITY,
      remainingUs: Number.POSITIVE_INFINITY,
    },
  ])('that $it leaves $remainingUs us', ({ timeoutMs, remainingUs }) => {
    const { guard, limiter } = make();
    guard.tryAcquire({ timeoutMs, arrivedUs: START_US - 20_000 });
    expect(limiter.questions[0]?.remainingUs).toBe(remainingUs);
  });

  it.each([0, -5, 20, Number.NEGATIVE_INFINITY])(
    'of %d ms that has passed is refused unasked',
    (timeoutMs) => {
      const { guard, limiter } = make();
      expect(refused(guard.tryAcquire({ timeoutMs, arrivedUs: START_US - 20_000 })).reason).toBe(
        'deadline',
      );
      expect(limiter.questions).toEqual([]);
      expect(limiter.refusals).toEqual([]);
    },
  );

  it('that alone makes the difference is the reason, and teaches nothing', () => {
    const { guard, limiter } = make();
    limiter.verdict = ({ remainingUs }) => remainingUs > 100_000;
    expect(refused(guard.tryAcquire({ timeoutMs: 50 })).reason).toBe('deadline');
    expect(limiter.refusals).toEqual([]);
    expect(guard.snapshot().rejected).toMatchObject({ deadline: 1, concurrency: 0 });
  });

  it('is not the reason when the call would be refused anyway', () => {
    const { guard, limiter } = make();
    limiter.verdict = () => false;
    expect(refused(guard.tryAcquire({ timeoutMs: 50 })).reason).toBe('concurrency');
    expect(limiter.refusals).toEqual([START_US]);
  });
});

describe('revoke', () => {
  it.each(['deadline', 'queue'] as const)(
    '(%s) gives the slot back as a refusal, and teaches nothing',
    (reason) => {
      const { guard, clock, limiter } = make();
      const permit = admitted(guard.tryAcquire());
      clock.advance(5_000);
      expect(permit.revoke(reason)).toMatchObject({ admitted: false, reason, name: 'g' });
      permit.release('success');
      expect(permit.revoke(reason).reason).toBe(reason); // again: the answer, but no second count
      expect(guard.snapshot()).toMatchObject({
        inflight: 0,
        admitted: 1,
        revoked: 1,
        rejected: { [reason]: 1 },
        outcomes: { success: 0, failure: 0, ignored: 0, abandoned: 0 },
        latency: { count: 0 },
        qps: 0,
      });
      // engines that count starts see the end, as an outcome from which nobody learns
      expect(limiter.samples.map(({ outcome }) => outcome)).toEqual(['ignored']);
      expect(limiter.refusals).toEqual([]);
    },
  );
});

describe('abandon', () => {
  it('gives the slot back as a client that left, and teaches nothing: nothing was done for it', () => {
    const { guard, clock, limiter } = make();
    const permit = admitted(guard.tryAcquire());
    clock.advance(5_000);
    permit.abandon();
    permit.abandon();
    permit.release('success');
    expect(guard.snapshot()).toMatchObject({
      inflight: 0,
      admitted: 1,
      revoked: 0,
      outcomes: { success: 0, failure: 0, ignored: 0, abandoned: 1 },
      latency: { count: 0 },
      qps: 0,
    });
    expect(limiter.samples.map(({ outcome }) => outcome)).toEqual(['ignored']);
  });
});

/** `finished` calls in a second, then as many refusals as asked for, then one more. */
function retryAfter(finished: number, refusals: number, random = 0.5): number {
  const clock = new VirtualClock();
  const guard = createGuard({ limit: 1, clock, random: () => random, registry: false });
  for (let i = 0; i < finished; i++) {
    const permit = admitted(guard.tryAcquire());
    clock.advance(1_000_000 / Math.max(1, finished));
    permit.release('success');
  }
  admitted(guard.tryAcquire());
  for (let i = 0; i < refusals; i++) guard.tryAcquire();
  clock.advance(200_000); // what the last refusals were told has expired
  return refused(guard.tryAcquire()).retryAfterMs;
}

describe('retryAfterMs', () => {
  it.each([
    { it: 'is the time in which a second’s excess drains', finished: 100, refusals: 200, ms: 2010 }, // 201/100 s
    { it: 'is at least 100 ms, jitter included', finished: 100, refusals: 0, ms: 125 },
    { it: 'is at most 10 s, jitter included', finished: 1, refusals: 900, ms: 8333 },
    { it: 'is a second while no rate is known', finished: 0, refusals: 5, ms: 1000 },
  ])('$it', ({ finished, refusals, ms }) => {
    expect(retryAfter(finished, refusals)).toBe(ms);
  });

  it.each([
    { random: 0, least: 100, most: 6667 },
    { random: 1 - 2 ** -53, least: 150, most: 10_000 },
  ])('spreads by a fifth within its bounds (chance $random)', ({ random, least, most }) => {
    expect(retryAfter(100, 0, random)).toBe(least);
    expect(retryAfter(1, 900, random)).toBe(most);
  });
});

describe('dry run', () => {
  it('lets through what it would refuse, and keeps it from the engine', () => {
    const limiter = new SpyLimiter(1);
    const { guard, clock } = make({ limit: limiter, dryRun: true });
    const first = admitted(guard.tryAcquire());
    const over = admitted(guard.tryAcquire());
    clock.advance(1_000);
    over.release('failure');
    first.release('success');
    expect(limiter.starts).toEqual([{ nowUs: START_US, inflight: 1 }]);
    expect(limiter.refusals).toEqual([START_US]);
    expect(limiter.samples.map(({ outcome }) => outcome)).toEqual(['success']);
    expect(guard.snapshot()).toMatchObject({
      dryRun: true,
      inflight: 0,
      admitted: 2,
      wouldReject: 1,
      rejected: { concurrency: 0 },
      outcomes: { success: 1, failure: 1 },
    });
  });

  it('judges by the calls that a real run would have let in', () => {
    const limiter = new SpyLimiter(1);
    const { guard } = make({ limit: limiter, dryRun: true });
    const permits = [1, 2, 3].map(() => admitted(guard.tryAcquire()));
    expect(guard.inflight).toBe(3);
    expect(limiter.questions.map(({ inflight }) => inflight)).toEqual([1, 2, 2]);
    permits[0]?.release('success');
    admitted(guard.tryAcquire());
    expect(guard.snapshot().wouldReject).toBe(2);
  });

  it('counts what it had let through once it is switched off', () => {
    const { guard } = make({ limit: 1, dryRun: true });
    const permits = [1, 2, 3].map(() => admitted(guard.tryAcquire()));
    guard.configure({ dryRun: false });
    permits[0]?.release('success');
    expect(refused(guard.tryAcquire()).reason).toBe('concurrency'); // two still run
    permits[1]?.release('success');
    permits[2]?.release('success');
    admitted(guard.tryAcquire());
  });

  it('lets a call through whose deadline has passed', () => {
    const { guard } = make({ limit: 1, dryRun: true });
    admitted(guard.tryAcquire({ timeoutMs: 0 })).release('success');
    expect(guard.snapshot()).toMatchObject({ wouldReject: 1, rejected: { deadline: 0 } });
  });
});

describe('configure', () => {
  it('keeps the count in flight over a swap of the limit: nothing is killed, the excess drains', () => {
    const { guard } = make({ limit: 100 });
    const permits = Array.from({ length: 80 }, () => admitted(guard.tryAcquire()));
    guard.configure({ limit: 10 });
    expect(guard).toMatchObject({ inflight: 80, maxConcurrency: 10 });
    for (const permit of permits.splice(0, 70)) permit.release('success');
    expect(refused(guard.tryAcquire()).reason).toBe('concurrency'); // 10 of 10
    permits.pop()?.release('success');
    permits.push(admitted(guard.tryAcquire()));
    guard.configure({ limit: 100 });
    permits.push(admitted(guard.tryAcquire())); // at once
    for (const permit of permits) permit.release('success');
    expect(guard.inflight).toBe(0);
  });

  it('tells a new engine nothing of calls that the old one let in', () => {
    const { guard } = make({ limit: 'unlimited' });
    const before = admitted(guard.tryAcquire());
    const limiter = new SpyLimiter();
    guard.configure({ limit: limiter });
    const after = admitted(guard.tryAcquire());
    before.release('success');
    after.release('failure');
    expect(
      limiter.samples.map(({ outcome, inflightAtStart }) => [outcome, inflightAtStart]),
    ).toEqual([['failure', 2]]);
  });

  it('keeps the engine, and what it knows, while the type stays', () => {
    const { guard } = make({ limit: { type: 'auto', strict: true, sampleWindowMs: 500 } });
    guard.configure({ limit: { type: 'auto', strict: true, sampleWindowMs: 700 } });
    expect(guard.flags().find(({ name }) => name === 'sampleWindowMs')?.value).toBe(700);
  });

  it.each([
    [{ limit: 0 }, /would admit nothing/],
    [{ limit: 5, dryRun: 'yes' }, /guard\.dryRun must be true or false, got "yes"/],
    [{ name: 'other' }, /guard g\.name is not an option; known: limit, dryRun/],
    [null, /must be an object/],
  ])('refuses %j and changes nothing', (partial, message) => {
    const { guard, events } = make({ limit: 7 });
    expect(() => guard.configure(partial as never)).toThrow(message);
    expect(guard.maxConcurrency).toBe(7);
    expect(guard.snapshot().dryRun).toBe(false);
    expect(events).toEqual([]);
  });

  it('shows what can be changed', () => {
    const { guard } = make({ limit: 7, dryRun: true });
    expect(guard.flags().filter(({ live }) => live)).toEqual([
      { name: 'limit', value: 7, default: 'auto', live: true },
      { name: 'dryRun', value: true, default: false, live: true },
      {
        name: 'maxConcurrency',
        value: 7,
        default: expect.anything(),
        live: true,
      },
    ]);
  });
});

describe('events', () => {
  it('tell refusals at most once a second for each reason, with the count since', () => {
    const limiter = new SpyLimiter(0);
    const { guard, clock, events } = make({ limit: limiter });
    for (let i = 0; i < 5; i++) guard.tryAcquire();
    guard.tryAcquire({ timeoutMs: 0 });
    clock.advanceMs(999);
    guard.tryAcquire();
    clock.advanceMs(1);
    guard.tryAcquire();
    expect(events).toEqual([
      { type: 'reject', name: 'g', reason: 'concurrency', count: 1 },
      { type: 'reject', name: 'g', reason: 'deadline', count: 1 },
      { type: 'reject', name: 'g', reason: 'concurrency', count: 6 }, // 4 + 1 + 1 since the first
    ]);
  });

  it('tell a warning of the engine once for each code', () => {
    const { guard, clock, limiter, events } = make();
    limiter.warns = { code: 'WARN_X', message: 'x' };
    for (let i = 0; i < 10; i++) {
      admitted(guard.tryAcquire()).release('success');
      clock.advanceMs(500);
    }
    expect(events).toEqual([{ type: 'warning', name: 'g', code: 'WARN_X', message: 'x' }]);
  });

  it('tell of changed settings, after the change', () => {
    let seen = 0;
    const { guard } = make({
      limit: 5,
      onEvent: () => {
        seen = guard.maxConcurrency;
      },
    });
    guard.configure({ limit: 6 });
    expect(seen).toBe(6);
  });

  it('may throw without harm', () => {
    const { guard } = make({
      limit: new SpyLimiter(0),
      onEvent: () => {
        throw new Error('listener');
      },
    });
    expect(guard.tryAcquire().admitted).toBe(false);
  });
});

describe('options', () => {
  it.each<[object | null, RegExp]>([
    [
      { nmae: 'x' },
      /guard\.nmae is not an option; known: limit, dryRun, name, onEvent, clock, random, timers, registry/,
    ],
    [null, /guard must be an object, got null/],
    [[], /guard must be an object, got an array of 0/],
    [{ name: '' }, /guard\.name must be a non-empty string, got ""/],
    [{ name: 5 }, /guard\.name must be a non-empty string, got 5/],
    [{ dryRun: 1 }, /guard\.dryRun must be true or false, got 1/],
    [{ onEvent: 'log' }, /guard\.onEvent must be a function, got "log"/],
    [{ clock: 5 }, /guard\.clock must be an object, got 5/],
    [{ clock: {} }, /guard\.clock\.nowUs must be a function, got undefined/],
    [{ random: 0.5 }, /guard\.random must be a function, got 0\.5/],
    [
      { timers: { setTimeout() {} } },
      /guard\.timers\.clearTimeout must be a function, got undefined/,
    ],
    [{ registry: true }, /guard\.registry must be an object, got true/],
    [{ registry: { add() {} } }, /guard\.registry\.remove must be a function, got undefined/],
    [{ limit: 0 }, /max concurrency 0 would admit nothing/],
    [{ limit: Number.NaN }, /max concurrency/],
    [{ limit: 'constant' }, /names no number/],
    [{ limit: 'atuo' }, /is no known limiter/],
    [{ limit: {} }, /max concurrency has nothing, but neither timeoutMs nor type/],
    [{ limit: { admits() {} } }, /missing: started\(\), refused\(\), record\(\), maxConcurrency/],
  ])('%j are refused', (options, message) => {
    const registry = createRegistry();
    const given = options !== null && !Array.isArray(options) && !('registry' in options);
    expect(() => createGuard((given ? { registry, ...options } : options) as never)).toThrow(
      message,
    );
    expect(registry.sources()).toEqual([]); // a guard that was not made is not listed
  });

  it('take undefined as absent, and are not written to', () => {
    const options = Object.freeze({
      limit: undefined,
      name: undefined,
      dryRun: undefined,
      registry: false as const,
    });
    const guard = createGuard(options);
    expect(guard.name).toBe('guard');
    expect(guard.snapshot()).toMatchObject({ limiter: 'auto', dryRun: false });
  });

  it('list the guard in the registry that is named', () => {
    const registry = createRegistry();
    const guard = createGuard({ registry, name: 'here' });
    expect(registry.sources()).toEqual([guard]);
  });
});

describe('an asking call', () => {
  it.each([
    { priority: 'urgent' },
    { priority: null },
    { timeoutMs: 'soon' },
    { arrivedUs: undefined },
    { unknown: true },
  ])('with %j is answered, never thrown at', (options) => {
    const { guard } = make({ limit: 1 });
    expect(guard.tryAcquire(options as never).admitted).toBe(true);
  });
});
