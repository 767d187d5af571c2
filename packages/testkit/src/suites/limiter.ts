import { strict as assert } from 'node:assert';
import { estimatesOf, type Limiter, type LimiterContext, type Outcome } from '@elimit/core';
import { seededRandom } from '../seeded-random.js';
import { registerChecks } from './checks.js';

/** A limiter that joins the suite. */
export interface LimiterSubject {
  /** Builds a fresh one. It must take chance and time from nowhere else. */
  create(context: LimiterContext): Limiter;
  /** The bounds its limit has to keep. @default 1 */
  readonly min?: number;
  /** @default Infinity */
  readonly max?: number;
  /** Checks that it does not pass, by name, each with the reason why that is right. */
  readonly except?: Readonly<Record<string, string>>;
}

const START_US = 10_000_000;
const SECOND_US = 1_000_000;

/**
 * What every limiter has to keep, the built-in ones and your own alike. One line to join, with the test function of any runner:
 *
 * ```ts
 * describe('my limiter', () => limiterSuite(it, { create: () => new MyLimiter(), max: 200 }));
 * ```
 */
export function limiterSuite(
  it: (name: string, run: () => void) => void,
  subject: LimiterSubject,
): void {
  registerChecks(it, checksOf(subject), subject.except);
}

function checksOf(subject: LimiterSubject): Record<string, () => void> {
  const { min = 1, max = Number.POSITIVE_INFINITY } = subject;
  const start = () => new Bench(subject.create({ random: seededRandom(7), nowUs: START_US }));
  const sound = (bench: Bench): void => {
    const { maxConcurrency } = bench.limiter;
    assert.ok(
      maxConcurrency >= min && maxConcurrency <= max,
      `limit ${maxConcurrency} is not from ${min} to ${max}`,
    );
    assert.ok(Number.isInteger(maxConcurrency) || maxConcurrency === Number.POSITIVE_INFINITY);
    assert.ok(bench.admits(1), 'a lone call is let through');
    for (const value of Object.values(estimatesOf(bench.limiter) ?? {})) {
      assert.ok(!Number.isNaN(value), 'no estimate is NaN');
    }
  };
  const steady: Load = { perSecond: 1000, seconds: 3, latencyUs: 5000, outcome: 'success' };

  return {
    'has every member of the contract'() {
      const { limiter } = start();
      assert.equal(typeof limiter.maxConcurrency, 'number');
      for (const member of ['admits', 'started', 'refused', 'record'] as const) {
        assert.equal(typeof limiter[member], 'function', member);
      }
    },
    'lets a lone call through before it knows anything'() {
      sound(start());
    },
    'keeps its limit whole and within its bounds under load that comes and goes'() {
      const bench = start();
      for (const perSecond of [1000, 50, 3000, 1, 5000, 200]) {
        for (const latencyUs of [100, 20_000, 1_000_000]) {
          bench.play({ ...steady, perSecond, latencyUs, seconds: 1 });
          sound(bench);
        }
      }
    },
    'is asked without being changed'() {
      const [asked, left] = [start(), start()];
      for (let round = 0; round < 20; round++) {
        for (let inflight = 1; inflight < 100; inflight++) asked.admits(inflight);
        asked.play(steady);
        left.play(steady);
        assert.deepEqual(asked.sight(), left.sight());
      }
    },
    'learns nothing from ignored calls'() {
      const [told, left] = [start(), start()];
      for (let round = 0; round < 20; round++) {
        told.play(steady, () => {
          told.limiter.started(told.nowUs, 1);
          told.limiter.record('ignored', 3_600_000_000, told.nowUs, 1);
        });
        left.play(steady);
        assert.deepEqual(told.sight(), left.sight());
      }
    },
    'takes no abandoned call for a fast one'() {
      const bench = start();
      bench.play({ ...steady, seconds: 20, latencyUs: 50_000 });
      const before = estimatesOf(bench.limiter)?.minLatencyUs ?? 0;
      bench.play({ ...steady, seconds: 20, latencyUs: 50_000 }, () => bench.call('abandoned', 1));
      const after = estimatesOf(bench.limiter)?.minLatencyUs ?? 0;
      assert.ok(after >= before || after === -1, `${after} us after ${before} us`);
      sound(bench);
    },
    'lives through hours without a sample'() {
      const bench = start();
      bench.play(steady);
      bench.nowUs += 5 * 3600 * SECOND_US;
      sound(bench);
      bench.play(steady);
      sound(bench);
    },
    'lives through latencies of 0'() {
      const bench = start();
      bench.play({ ...steady, latencyUs: 0, seconds: 10 });
      sound(bench);
      bench.play(steady);
      sound(bench);
    },
    'lives through calls that all end in one instant'() {
      const bench = start();
      for (let i = 0; i < 5000; i++) bench.call('success', 1000);
      sound(bench);
    },
    'lives through latencies of a century'() {
      const bench = start();
      bench.play({ ...steady, latencyUs: 100 * 365 * 86_400 * SECOND_US });
      sound(bench);
    },
    'still lets a lone call through when all calls fail'() {
      const bench = start();
      bench.play(steady);
      bench.play({ ...steady, outcome: 'failure', seconds: 60 });
      sound(bench);
      bench.play({ ...steady, seconds: 10 });
      sound(bench);
    },
    'still lets a lone call through when all callers give up'() {
      const bench = start();
      bench.play({ ...steady, outcome: 'abandoned', latencyUs: 500_000, seconds: 60 });
      sound(bench);
    },
    'takes a clock that starts at 0'() {
      const bench = new Bench(subject.create({ random: seededRandom(7), nowUs: 0 }), 0);
      bench.play(steady);
      sound(bench);
    },
    'goes on after ten million refusals a second'() {
      const bench = start();
      bench.play(steady);
      for (let i = 0; i < 100_000; i++) {
        if (i % 10 === 0) bench.nowUs += 1;
        bench.limiter.refused(bench.nowUs);
      }
      sound(bench);
    },
  };
}

interface Load {
  readonly perSecond: number;
  readonly seconds: number;
  readonly latencyUs: number;
  readonly outcome: Outcome;
}

/** Plays loads on a limiter, one call after the other. */
class Bench {
  constructor(
    readonly limiter: Limiter,
    public nowUs = START_US,
  ) {}

  admits(inflight: number): boolean {
    return this.limiter.admits(inflight, this.nowUs, Number.POSITIVE_INFINITY);
  }

  /** All that can be seen of it. */
  sight(): unknown {
    const { limiter } = this;
    const answers = [1, 2, 5, 10, 20, 50, 100].map((inflight) => this.admits(inflight));
    return { limit: limiter.maxConcurrency, answers, estimates: estimatesOf(limiter) };
  }

  call(outcome: Outcome, latencyUs: number): void {
    this.limiter.started(this.nowUs, 1);
    this.limiter.record(outcome, latencyUs, this.nowUs, 1);
  }

  play(load: Load, between?: () => void): void {
    const gapUs = Math.round(SECOND_US / load.perSecond);
    for (let i = 0; i < load.perSecond * load.seconds; i++) {
      this.nowUs += gapUs;
      this.call(load.outcome, load.latencyUs);
      between?.();
    }
  }
}
