import { strict as assert } from 'node:assert';
import type { Entry, Guard, GuardOptions, Permit, Rejection } from '@elimit/core';
import { settle, VirtualClock } from '../virtual-clock.js';
import { registerChecks } from './checks.js';

/** A guard that joins the suite: one of one's own, or one of ours behind something. */
export interface GuardSubject {
  /** Builds a fresh one with these options. It must take time from nowhere else. */
  create(options: GuardOptions): Guard;
  /** Checks that it does not pass, by name, each with the reason why that is right. */
  readonly except?: Readonly<Record<string, string>>;
}

/**
 * What everything that calls itself a guard has to keep. One line to join, with the test function of any runner:
 *
 * ```ts
 * describe('my guard', () => guardSuite(it, { create: (options) => new MyGuard(options) }));
 * ```
 */
export function guardSuite(
  it: (name: string, run: () => void | Promise<void>) => void,
  subject: GuardSubject,
): void {
  registerChecks(it, checksOf(subject), subject.except);
}

function admitted(entry: Entry): Permit {
  assert.ok(entry.admitted, 'expected to be admitted');
  return entry;
}

function refused(entry: Entry): Rejection {
  assert.ok(!entry.admitted, 'expected to be refused');
  return entry;
}

function checksOf(subject: GuardSubject): Record<string, () => void | Promise<void>> {
  const start = (limit: number) => {
    const clock = new VirtualClock();
    const guard = subject.create({ limit, clock, timers: clock, registry: false });
    return { clock, guard };
  };

  return {
    'admits up to its limit and not one more'() {
      const { guard } = start(3);
      assert.deepEqual(
        [1, 2, 3].map(() => admitted(guard.tryAcquire()).inflight),
        [1, 2, 3],
      );
      assert.equal(refused(guard.tryAcquire()).reason, 'concurrency');
      assert.equal(guard.inflight, 3);
      assert.equal(guard.maxConcurrency, 3);
    },
    'takes a slot back once, whatever is called afterwards'() {
      const { guard } = start(3);
      const [first, second] = [admitted(guard.tryAcquire()), admitted(guard.tryAcquire())];
      first.release('success');
      first.release('failure');
      first.revoke('queue');
      assert.equal(guard.inflight, 1);
      second.revoke('deadline');
      second.revoke('deadline');
      second.release('success');
      assert.equal(guard.inflight, 0);
      const { outcomes, rejected } = guard.snapshot();
      assert.deepEqual(
        [outcomes.success, outcomes.failure, rejected.deadline, rejected.queue],
        [1, 0, 1, 0],
      );
    },
    'says when asking again makes sense, within 100 ms and 10 s'() {
      const { guard } = start(1);
      guard.tryAcquire();
      for (let i = 0; i < 100; i++) {
        const { retryAfterMs, name } = refused(guard.tryAcquire());
        assert.ok(retryAfterMs >= 100 && retryAfterMs <= 10_000, `retryAfterMs ${retryAfterMs}`);
        assert.ok(name !== '');
      }
    },
    'refuses a call whose deadline has passed, and counts it as that'() {
      const { guard, clock } = start(1);
      assert.equal(refused(guard.tryAcquire({ timeoutMs: 0 })).reason, 'deadline');
      const arrivedUs = clock.nowUs() - 50_000;
      assert.equal(refused(guard.tryAcquire({ timeoutMs: 50, arrivedUs })).reason, 'deadline');
      admitted(guard.tryAcquire({ timeoutMs: 51, arrivedUs }));
      assert.equal(guard.snapshot().rejected.deadline, 2);
    },
    'measures from the arrival, without the client’s own time'() {
      const { guard, clock } = start(1);
      const permit = admitted(guard.tryAcquire({ arrivedUs: clock.nowUs() - 2_000 }));
      clock.advance(10_000);
      permit.release('success', 4_000);
      assert.equal(guard.snapshot().latency.maxUs, 8_000);
    },
    'keeps its count over a change of the limit'() {
      const { guard } = start(10);
      const permits = Array.from({ length: 10 }, () => admitted(guard.tryAcquire()));
      guard.configure({ limit: 2 });
      assert.deepEqual([guard.inflight, guard.maxConcurrency], [10, 2]);
      for (const permit of permits.slice(0, 8)) permit.release('success');
      refused(guard.tryAcquire());
      permits[8]?.release('success');
      admitted(guard.tryAcquire());
    },
    'changes nothing when the new limit is bad'() {
      const { guard } = start(4);
      assert.throws(() => guard.configure({ limit: 0 }), RangeError);
      assert.equal(guard.maxConcurrency, 4);
    },
    async 'releases whatever way a function ends'() {
      const { guard, clock } = start(1);
      assert.equal(await guard.execute(() => 5), 5);
      await assert.rejects(guard.execute(boom), isBoom);
      await assert.rejects(
        guard.execute(() => settle().then(boom)),
        isBoom,
      );
      const late = guard.execute(({ signal }) => aborted(signal), { timeoutMs: 20 });
      const code = late.catch((error: unknown) => (error as { code: string }).code);
      await clock.advanceMsAsync(20);
      assert.equal(await code, 'ERR_TIMEOUT');
      await settle();
      assert.equal(guard.inflight, 0);
      assert.equal(clock.pendingTimers, 0);
      const { success, failure } = guard.snapshot().outcomes;
      assert.deepEqual([success, failure], [1, 3]);
    },
    'shows itself without being changed'() {
      const { guard } = start(2);
      admitted(guard.tryAcquire());
      assert.deepEqual(guard.snapshot(), guard.snapshot());
      assert.ok(guard.flags().length > 0);
      JSON.stringify([guard.snapshot(), guard.flags()]);
    },
  };
}

function boom(): never {
  throw new Error('boom');
}

function isBoom(error: unknown): boolean {
  return (error as Error).message === 'boom';
}

/** Ends when the signal aborts, as well-behaved work does. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
}
