import { createGuard, createGuards, type Guard, type Outcome, type Permit } from '@elimit/core';
import { seededRandom, VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';

const OUTCOMES = ['success', 'failure', 'ignored', 'abandoned'] as const;
const LIMITS = [1, 2, 7, 30, 'unlimited', 'auto', 'timeout', 'gradient'] as const;

type Step =
  | { do: 'acquire'; priority: 'critical' | 'default' | 'sheddable'; timeoutMs: number | undefined }
  | { do: 'release'; which: number; outcome: Outcome; excludedUs: number }
  | { do: 'revoke'; which: number; reason: 'deadline' | 'queue' }
  | { do: 'configure'; limit: (typeof LIMITS)[number] }
  | { do: 'loop'; turnUs: number; idled: boolean }
  | { do: 'wait'; us: number };

const which = fc.nat(50);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      priority: fc.constantFrom('critical', 'default', 'sheddable'),
      timeoutMs: fc.option(fc.integer({ min: -1, max: 2000 }), { nil: undefined }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('release' as const),
      which,
      outcome: fc.constantFrom(...OUTCOMES),
      excludedUs: fc.nat(1e6),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('revoke' as const),
      which,
      reason: fc.constantFrom('deadline', 'queue'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('configure' as const),
      limit: fc.constantFrom(...LIMITS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('loop' as const),
      turnUs: fc.nat(200_000),
      idled: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      us: fc.oneof(fc.nat(1000), fc.nat(500_000), fc.nat(90_000_000)),
    }),
  },
);

/** What must hold of one guard after every step. */
function sound(guard: Guard, permits: readonly Permit[], given: { back: number }): void {
  const { inflight, admitted, revoked, rejected, outcomes, latency, qps, oldestInflightMs } =
    guard.snapshot();
  expect(guard.inflight).toBe(permits.length);
  expect(inflight).toBe(permits.length);
  expect(admitted - given.back).toBe(inflight);
  expect(
    revoked + outcomes.success + outcomes.failure + outcomes.ignored + outcomes.abandoned,
  ).toBe(given.back);
  expect(rejected.concurrency).toBeGreaterThanOrEqual(0);
  expect(guard.maxConcurrency).toBeGreaterThanOrEqual(1);
  expect(latency.p50Us).toBeLessThanOrEqual(latency.p999Us);
  expect(latency.p999Us).toBeLessThanOrEqual(latency.maxUs);
  expect(Number.isFinite(qps) && qps >= 0 && oldestInflightMs >= 0).toBe(true);
}

it('counts right under any interleaving: in flight = admitted - released, never over the limit at an admission', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.constantFrom(...LIMITS), (steps, limit) => {
      const clock = new VirtualClock();
      const random = seededRandom(1);
      const guard = createGuard({ limit, clock, timers: clock, random, registry: false });
      const permits: Permit[] = [];
      const ended: Permit[] = [];
      const given = { back: 0 };
      for (const s of steps) {
        switch (s.do) {
          case 'acquire': {
            const before = guard.maxConcurrency;
            const entry = guard.tryAcquire(s);
            if (entry.admitted) {
              permits.push(entry);
              expect(entry.inflight).toBe(permits.length);
              // asking may have moved the reserve of the classes, hence both
              const most = Math.max(before, guard.maxConcurrency);
              expect(entry.inflight).toBeLessThanOrEqual(most);
            } else {
              expect(entry.retryAfterMs).toBeGreaterThanOrEqual(100);
              expect(entry.retryAfterMs).toBeLessThanOrEqual(10_000);
            }
            break;
          }
          case 'release':
          case 'revoke': {
            const [permit] = permits.splice(s.which % Math.max(1, permits.length), 1);
            if (permit === undefined) break;
            if (s.do === 'release') permit.release(s.outcome, s.excludedUs);
            else expect(permit.revoke(s.reason).reason).toBe(s.reason);
            given.back++;
            ended.push(permit);
            // whatever is done to a permit that was given back changes nothing
            const old = ended[s.which % ended.length];
            old?.release('failure');
            old?.revoke('queue');
            break;
          }
          case 'configure':
            guard.configure({ limit: s.limit });
            break;
          case 'loop':
            guard.observeLoop(s);
            break;
          case 'wait':
            clock.advance(s.us);
            break;
        }
        sound(guard, permits, given);
      }
      for (const permit of permits.splice(0)) {
        permit.release('success');
        given.back++;
      }
      sound(guard, permits, given);
      expect(clock.pendingTimers).toBe(0);
    }),
    { numRuns: 400 },
  );
}, 60_000);

it('keeps the server’s count the sum of its methods’, under any interleaving and change of limits', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const call = fc.record({
    name,
    which: fc.nat(20),
    end: fc.boolean(),
    cap: fc.option(fc.integer({ min: 1, max: 9 })),
  });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 120 }), (calls) => {
      const clock = new VirtualClock();
      const guards = createGuards({
        serverMaxConcurrency: 5,
        methodMaxConcurrency: 3,
        methods: { a: 'unlimited' },
        maxNames: 3,
        clock,
        registry: false,
      });
      const permits: Permit[] = [];
      for (const { name: method, which: index, end, cap } of calls) {
        if (cap !== null) guards.setMaxConcurrency(method, cap);
        if (end) permits.splice(index % Math.max(1, permits.length), 1)[0]?.release('success');
        const { inflight } = guards.server;
        const entry = guards.tryAcquire(method);
        if (entry.admitted) permits.push(entry);
        else if (entry.reason === 'server') expect(inflight).toBe(5);
        expect(guards.server.inflight).toBe(permits.length);
        expect(guards.server.inflight).toBeLessThanOrEqual(5);
        const sum = guards
          .names()
          .reduce((total, each) => total + guards.guardOf(each).inflight, 0);
        expect(sum).toBe(permits.length);
      }
      for (const permit of permits) permit.release('success');
      expect(guards.server.inflight).toBe(0);
    }),
    { numRuns: 300 },
  );
}, 60_000);
