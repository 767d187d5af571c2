import { VirtualClock } from '@elimit/testkit';
import { expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { poolOf } from '../src/endpoint-pool.js';
import {
  after,
  answer,
  type Behaviour,
  endOf,
  fail,
  never,
  refusal,
  virtualChannel,
} from './support/virtual-channel.js';

type Kind =
  | 'good'
  | 'slow'
  | 'never'
  | 'reset'
  | 'refused'
  | 'connectTimeout'
  | 'refusal'
  | '500'
  | '503'
  | '429'
  | 'cancel';

const behaviourOf = (kind: Kind, clock: VirtualClock): Behaviour =>
  ({
    good: () => 'good',
    slow: after(clock, 300),
    never,
    reset: fail('ECONNRESET'),
    refused: fail('ECONNREFUSED'),
    connectTimeout: fail('ERR_CONNECT_TIMEOUT'),
    refusal: refusal(),
    '500': answer(500),
    '503': answer(503),
    '429': answer(429),
    cancel: fail('ABORT_ERR'),
  })[kind];

const kinds = fc.constantFrom<Kind>(
  'good',
  'slow',
  'never',
  'reset',
  'refused',
  'connectTimeout',
  'refusal',
  '500',
  '503',
  '429',
  'cancel',
);
const steps = fc.array(
  fc.record({
    /** What a, b and c do from now on. */
    nodes: fc.tuple(kinds, kinds, kinds),
    calls: fc.integer({ min: 1, max: 2 }),
    method: fc.constantFrom('GET', 'POST'),
    abortAtMs: fc.option(fc.integer({ min: 0, max: 600 }), { nil: undefined }),
    carriedTimeoutMs: fc.option(fc.integer({ min: 0, max: 600 }), { nil: undefined }),
    waitMs: fc.integer({ min: 0, max: 4000 }),
  }),
  { minLength: 1, maxLength: 5 },
);
const settings = fc.record({
  balancer: fc.constantFrom('roundRobin', 'random', 'weighted', 'leastLoaded'),
  maxRetries: fc.integer({ min: 0, max: 4 }),
  tryTimeoutMs: fc.option(fc.integer({ min: 201, max: 500 }), { nil: undefined }),
  backupRequestMs: fc.option(fc.integer({ min: 1, max: 499 }), { nil: undefined }),
  errorCost: fc.boolean(),
});

it('whatever the nodes do, calls end in time, slots come back, and nothing is left behind', async () => {
  await fc.assert(
    fc.asyncProperty(settings, steps, async (options, script) => {
      const bench = virtualChannel('abc', options);
      const { clock, channel, nodes, tries } = bench;
      for (const { nodes: now, calls, method, abortAtMs, carriedTimeoutMs, waitMs } of script) {
        for (const [i, kind] of now.entries()) nodes['abc'[i] as string] = behaviourOf(kind, clock);
        for (let i = 0; i < calls; i++) {
          const control = new AbortController();
          const before = tries.length;
          const startUs = clock.nowUs();
          const call = endOf(
            bench
              .call({ method, signal: control.signal, carriedTimeoutMs })
              .finally(() => expect(clock.nowUs() - startUs).toBeLessThanOrEqual(500_000)),
          );
          if (abortAtMs !== undefined) clock.setTimeout(() => control.abort(), abortAtMs);
          await clock.advanceMsAsync(600);
          await call;
          const made = tries.slice(before);
          expect(made.length).toBeLessThanOrEqual(1 + options.maxRetries);
          // a POST that may have arrived is not sent again
          const mayHaveArrived = made.filter((letter) =>
            ['slow', 'never', 'reset', '500', '503'].includes(now['abc'.indexOf(letter)] as Kind),
          );
          if (method === 'POST') expect(mayHaveArrived.length).toBeLessThanOrEqual(1);
        }
        await clock.advanceMsAsync(waitMs);
      }
      for (const endpoint of channel.endpoints()) {
        expect(endpoint.inflight).toBe(0);
        expect(endpoint.failures + endpoint.refusals).toBeLessThanOrEqual(endpoint.calls);
        expect(endpoint.meanLatencyUs).toBeGreaterThanOrEqual(0);
      }
      channel.close();
      await clock.advanceMsAsync(1000); // timers of the nodes themselves
      expect(clock.pendingTimers).toBe(0);
      expect(poolOf(clock).size).toBe(0);
    }),
    { numRuns: 300 },
  );
}, 60_000);

it('2000 channels made and closed leave nothing behind', () => {
  const clock = new VirtualClock();
  for (let i = 0; i < 2000; i++) virtualChannel('ab', {}, { clock }).channel.close();
  expect(poolOf(clock).size).toBe(0);
  expect(clock.pendingTimers).toBe(0);
});

it('a hundred calls on one signal put one listener on it, and leave none', async () => {
  const { call, nodes, clock } = virtualChannel('a');
  const control = new AbortController();
  const { signal } = control;
  const added = jest.spyOn(signal, 'addEventListener');
  const removed = jest.spyOn(signal, 'removeEventListener');
  nodes.a = after(clock, 10);
  const calls = Array.from({ length: 100 }, () => call({ signal }));
  await clock.advanceMsAsync(10);
  await Promise.all(calls);
  expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);

  const later = Array.from({ length: 100 }, () => endOf(call({ signal })));
  control.abort('all of you');
  expect(await Promise.all(later)).toEqual(later.map(() => 'all of you'));
  expect(clock.pendingTimers).toBe(100); // those of the node itself
});
