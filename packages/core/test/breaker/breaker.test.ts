import {
  type BreakerChange,
  type BreakerContext,
  createBreaker,
  ErrorCostBreaker,
  type ErrorCostOptions,
  NO_TOKEN,
  type Outcome,
} from '@elimit/core';
import { describe, expect, it } from '@jest/globals';

const MS = 1000;

/** A breaker with a clock of its own; half a jitter each, so that the middle of the bounds is met. */
class Bench {
  nowUs = 1_000_000;
  readonly changes: string[] = [];
  readonly breaker: ErrorCostBreaker;

  constructor(options: ErrorCostOptions = {}, context: BreakerContext = {}) {
    this.breaker = new ErrorCostBreaker(
      { isolationJitterRatio: 0, ...options },
      { random: () => 0.5, onChange: (change) => this.changes.push(told(change)), ...context },
    );
  }

  get state(): string {
    return this.breaker.state(this.nowUs);
  }

  ask(): number {
    return this.breaker.tryCall(this.nowUs);
  }

  end(token: number, outcome: Outcome, latencyMs = 10): void {
    this.breaker.record(outcome, latencyMs * MS, this.nowUs, token);
  }

  /** `n` calls, `everyMs` apart; those refused are left out. How many ran. */
  calls(n: number, outcome: Outcome, { latencyMs = 10, everyMs = 1 } = {}): number {
    let ran = 0;
    for (let i = 0; i < n; i++) {
      this.passMs(everyMs);
      const token = this.ask();
      if (token === NO_TOKEN) continue;
      ran += 1;
      this.end(token, outcome, latencyMs);
    }
    return ran;
  }

  passMs(ms: number): void {
    this.nowUs += ms * MS;
  }

  /** Opens by five failures and waits until half-open. */
  toHalfOpen(): void {
    this.calls(5, 'failure');
    this.passMs(100);
  }
}

function told({ state, cause, isolationUs }: BreakerChange): string {
  return `${state} ${cause} ${isolationUs / MS}`;
}

describe('closed', () => {
  // short window 8 at 0.5: 8 × 0.5 × 1.02 = 4.08 failures
  it.each<{ it: string; run: (bench: Bench) => void; state: string }>([
    {
      it: 'opens with the fifth failure in a row',
      run: (b) => b.calls(5, 'failure'),
      state: 'open',
    },
    { it: 'stays closed after four', run: (b) => b.calls(4, 'failure'), state: 'closed' },
    {
      it: 'opens as fast when the failures are instant',
      run: (b) => {
        b.calls(100, 'success', { latencyMs: 10 });
        b.calls(5, 'failure', { latencyMs: 0 });
      },
      state: 'open',
    },
    {
      it: 'opens with the fifth after a very slow first success',
      run: (b) => {
        b.calls(1, 'success', { latencyMs: 60_000 });
        b.calls(6, 'failure', { latencyMs: 1 }); // one success has let none of the cost fade: there was none
      },
      state: 'open',
    },
    {
      // 1 + 0.613 + ... = 2.58 after many rounds
      it: 'bears every other call failing for a short while',
      run: (b) => {
        for (let i = 0; i < 20; i++) {
          b.calls(1, 'failure');
          b.calls(1, 'success');
        }
      },
      state: 'closed',
    },
    {
      it: 'opens when every other call fails for longer: the long window, 800 × 0.05 × 1.02 = 40.8 averages',
      run: (b) => {
        for (let i = 0; i < 50; i++) {
          b.calls(1, 'failure');
          b.calls(1, 'success');
        }
      },
      state: 'open',
    },
    {
      it: 'bears one failure a minute for an hour',
      run: (b) => b.calls(60, 'failure', { everyMs: 60_000 }),
      state: 'closed',
    },
    { it: 'bears a first call that fails', run: (b) => b.calls(1, 'failure'), state: 'closed' },
    {
      it: 'bears three calls of which all fail',
      run: (b) => b.calls(3, 'failure'),
      state: 'closed',
    },
    { it: 'learns nothing from refusals', run: (b) => b.calls(1000, 'ignored'), state: 'closed' },
    { it: 'learns nothing from cancels', run: (b) => b.calls(1000, 'abandoned'), state: 'closed' },
  ])('$it', ({ run, state }) => {
    const bench = new Bench();
    run(bench);
    expect(bench.state).toBe(state);
  });

  it('weighs failures in the long window by their latency, between 1.5 and 2 averages: 40.8 is 28 or 21 of them', () => {
    const opensAfter = (latencyMs: number): number => {
      const bench = new Bench({ shortWindowSize: 1000 });
      bench.calls(100, 'success', { latencyMs: 10, everyMs: 0 });
      return bench.calls(100, 'failure', { latencyMs, everyMs: 0 });
    };
    expect(opensAfter(1)).toBe(28);
    expect(opensAfter(18)).toBe(23); // 40.8 / 1.8 = 22.7
    expect(opensAfter(20)).toBe(21);
    expect(opensAfter(1000)).toBe(21); // at most maxFailedLatencyMultiple
  });

  it('respects a larger minimum volume', () => {
    const bench = new Bench({ minCalls: 20 });
    bench.calls(19, 'failure', { everyMs: 0 });
    expect(bench.state).toBe('closed');
    bench.calls(1, 'failure', { everyMs: 0 });
    expect(bench.state).toBe('open');
  });

  it('forgets half of the cost in costHalfLifeMs without any call', () => {
    const bench = new Bench({ costHalfLifeMs: 1000 });
    bench.calls(4, 'failure', { everyMs: 0 });
    expect(bench.breaker.errorCostRatio).toBeCloseTo(4 / 4.08, 10);
    bench.passMs(1000);
    bench.calls(1, 'failure', { everyMs: 0 });
    expect(bench.breaker.errorCostRatio).toBeCloseTo((4 / 2 + 1) / 4.08, 10);
  });

  it('has no cost left after enough good calls: not a tiny number, with which every later call would be six times slower', () => {
    const bench = new Bench({ costHalfLifeMs: 86_400_000 });
    bench.calls(1, 'failure');
    bench.calls(4000, 'success');
    expect(bench.breaker.errorCostRatio).toBeGreaterThan(0);
    bench.calls(1000, 'success');
    expect(bench.breaker.errorCostRatio).toBe(0);
  });

  it('takes the mean of good calls, negative latencies as 0, and untimed ones not at all', () => {
    const bench = new Bench();
    const token = bench.ask();
    for (const latencyUs of [100, 300, -5, Number.NaN, Number.POSITIVE_INFINITY, 400]) {
      bench.breaker.record('success', latencyUs, bench.nowUs, token);
    }
    expect(bench.breaker.meanLatencyUs).toBe(200); // (100 + 300 + 0 + 400) / 4
  });

  it('counts an untimed good call like a timed one, and none of an earlier epoch', () => {
    const bench = new Bench();
    bench.calls(256, 'success');
    const token = bench.ask();
    bench.calls(1, 'failure');
    const cost = bench.breaker.errorCostRatio;
    expect(bench.breaker.recordUntimed(token)).toBe(true);
    expect(bench.breaker.errorCostRatio).toBeLessThan(cost);
    bench.breaker.forceOpen(bench.nowUs);
    bench.breaker.reset(bench.nowUs);
    expect(bench.breaker.recordUntimed(token)).toBe(false);
  });

  it('stays closed while a cap forbids to open, and opens with the next failure after', () => {
    let may = false;
    const bench = new Bench({}, { mayOpen: () => may });
    bench.calls(50, 'failure');
    expect(bench.state).toBe('closed');
    may = true;
    bench.calls(1, 'failure');
    expect(bench.state).toBe('open');
  });

  it('opens at once when told from outside, whatever the cap says', () => {
    const bench = new Bench({}, { mayOpen: () => false });
    bench.breaker.isolate(bench.nowUs, 'refused');
    bench.breaker.isolate(bench.nowUs, 'refused');
    expect(bench.changes).toEqual(['open refused 100']);
    expect(bench.breaker.lastCause).toBe('refused');
  });
});

describe('open', () => {
  it('refuses until the isolation is over, then half-opens', () => {
    const bench = new Bench();
    bench.calls(5, 'failure');
    bench.passMs(99);
    expect(bench.ask()).toBe(NO_TOKEN);
    expect(bench.breaker.isolationLeftUs(bench.nowUs)).toBe(1 * MS);
    bench.passMs(1);
    expect(bench.ask()).not.toBe(NO_TOKEN);
    expect(bench.changes).toEqual(['open errorCost 100', 'halfOpen timer 0']);
  });

  it('doubles with each failed trial, up to the maximum', () => {
    const bench = new Bench({ maxIsolationMs: 700 });
    bench.calls(5, 'failure');
    for (const ms of [100, 200, 400, 700, 700]) {
      expect(bench.breaker.isolationUs).toBe(ms * MS);
      bench.passMs(ms);
      bench.end(bench.ask(), 'failure');
    }
    expect(bench.breaker.opened).toBe(6);
  });

  it('doubles when it opens again right after the return, and forgives good time', () => {
    const isolationAfter = (goodMs: number): number => {
      const bench = new Bench({ rampMs: 0, relapseMs: 10_000, halfOpenWindowSize: 0 });
      bench.calls(5, 'failure', { everyMs: 0 });
      bench.passMs(100);
      expect(bench.state).toBe('closed');
      bench.passMs(goodMs);
      bench.calls(5, 'failure', { everyMs: 0 });
      return bench.breaker.isolationUs / MS;
    };
    expect(isolationAfter(0)).toBe(200);
    expect(isolationAfter(5000)).toBe(Math.round(200_000 / Math.SQRT2) / MS);
    expect(isolationAfter(10_000)).toBe(100);
    expect(isolationAfter(60_000)).toBe(100);
  });

  it.each([
    { draw: 0, ms: 100 }, // never below the minimum
    { draw: 0.999_999, ms: 120 }, // 100 to 100 + 20 %
  ])('moves the isolation by chance, within its bounds: $draw', ({ draw, ms }) => {
    const breaker = new ErrorCostBreaker({}, { random: () => draw });
    breaker.isolate(0, 'test');
    expect(Math.round(breaker.isolationUs / MS)).toBe(ms);
  });

  it('waits for the caller where the caller ends isolations', () => {
    const bench = new Bench({}, { isolationEndsBy: 'caller' });
    bench.calls(5, 'failure');
    bench.passMs(100_000);
    expect(bench.state).toBe('open');
    expect(bench.breaker.isolationLeftUs(bench.nowUs)).toBe(0);
    bench.breaker.halfOpen(bench.nowUs, 'healthCheck');
    expect(bench.state).toBe('halfOpen');
    expect(bench.changes.at(-1)).toBe('halfOpen healthCheck 0');
  });

  it('stays open by hand until reset, against time and health checks', () => {
    const bench = new Bench();
    bench.breaker.forceOpen(bench.nowUs);
    bench.breaker.forceOpen(bench.nowUs);
    bench.passMs(1e9);
    bench.breaker.halfOpen(bench.nowUs, 'healthCheck');
    expect(bench.ask()).toBe(NO_TOKEN);
    expect(bench.breaker.isolationLeftUs(bench.nowUs)).toBe(Number.POSITIVE_INFINITY);
    expect(bench.breaker.retryAfterUs(bench.nowUs)).toBe(100 * MS);
    bench.breaker.reset(bench.nowUs);
    expect(bench.state).toBe('closed');
    expect(bench.changes).toEqual(['open forced Infinity', 'closed reset 0']);
  });
});

describe('half-open', () => {
  it('lets one trial call more through with each success, and closes after halfOpenWindowSize', () => {
    const bench = new Bench({ halfOpenWindowSize: 4 });
    bench.toHalfOpen();
    const first = bench.ask();
    expect(bench.ask()).toBe(NO_TOKEN); // one at first
    bench.end(first, 'success');
    const [second, third] = [bench.ask(), bench.ask()];
    expect(bench.ask()).toBe(NO_TOKEN); // two after one success
    bench.end(second, 'success');
    const fourth = bench.ask();
    expect(bench.ask()).toBe(NO_TOKEN); // two in flight are the two still needed
    bench.end(third, 'success');
    bench.end(fourth, 'success');
    expect(bench.state).toBe('closed');
    expect(bench.changes.at(-1)).toBe('closed trial 0');
  });

  it('gives the place of a cancelled or refused trial to the next call', () => {
    const bench = new Bench();
    bench.toHalfOpen();
    for (const outcome of ['abandoned', 'ignored', 'abandoned'] as const) {
      const token = bench.ask();
      expect(bench.breaker.isTrial(token)).toBe(true);
      bench.end(token, outcome);
      bench.end(token, 'failure'); // told twice
    }
    expect(bench.state).toBe('halfOpen');
  });

  it('gives a trial call that never settles its deadline, and isolates from then on', () => {
    const bench = new Bench({ trialTimeoutMs: 500 });
    bench.toHalfOpen();
    const hung = bench.ask();
    bench.passMs(499);
    expect(bench.state).toBe('halfOpen');
    expect(bench.ask()).toBe(NO_TOKEN);
    bench.passMs(1 + 150); // asked late: the isolation of 200 ms began at the deadline
    expect(bench.breaker.isolationLeftUs(bench.nowUs)).toBe(50 * MS);
    expect(bench.breaker.lastCause).toBe('trialTimeout');
    bench.passMs(50);
    const next = bench.ask();
    expect(next).not.toBe(NO_TOKEN); // the next trial follows
    bench.end(hung, 'failure');
    bench.end(hung, 'success');
    expect(bench.state).toBe('halfOpen'); // the late result says nothing
  });

  it('takes a changed window size, also one already reached', () => {
    const bench = new Bench({ halfOpenWindowSize: 10 });
    bench.toHalfOpen();
    bench.end(bench.ask(), 'success');
    bench.end(bench.ask(), 'success');
    bench.breaker.configure({ halfOpenWindowSize: 1 });
    bench.end(bench.ask(), 'success');
    expect(bench.state).toBe('closed');
  });

  it('is left out with a window of 0', () => {
    const bench = new Bench({ halfOpenWindowSize: 0 });
    bench.toHalfOpen();
    expect(bench.state).toBe('closed');
    expect(bench.changes).toEqual(['open errorCost 100', 'closed timer 0']);
  });
});

describe('the ramp', () => {
  function returned(options: ErrorCostOptions = {}): Bench {
    const bench = new Bench({
      halfOpenWindowSize: 1,
      minIsolationMs: 1000,
      maxIsolationMs: 1000,
      rampMs: 1000,
      ...options,
    });
    bench.calls(5, 'failure');
    bench.passMs(1000);
    bench.end(bench.ask(), 'success');
    expect(bench.state).toBe('closed');
    return bench;
  }

  it('lets a tenth through at first, and all after rampMs', () => {
    const bench = returned();
    expect(bench.breaker.rampRatio(bench.nowUs)).toBe(0.1);
    expect(bench.calls(20, 'ignored', { everyMs: 0 })).toBe(2); // the 1st and the 11th
    bench.passMs(500);
    expect(bench.breaker.rampRatio(bench.nowUs)).toBe(0.5);
    expect(bench.calls(20, 'ignored', { everyMs: 0 })).toBe(10);
    bench.passMs(500);
    expect(bench.calls(20, 'ignored', { everyMs: 0 })).toBe(20);
    expect(bench.breaker.rampRatio(bench.nowUs)).toBe(1);
  });

  it('is no longer than the isolation was', () => {
    const bench = returned({ minIsolationMs: 100, maxIsolationMs: 100 });
    bench.passMs(0);
    expect(bench.breaker.rampRatio(bench.nowUs + 50 * MS)).toBe(0.5);
    expect(bench.breaker.rampRatio(bench.nowUs + 100 * MS)).toBe(1);
  });

  it('halves its share on a failure, instead of another isolation', () => {
    const bench = returned();
    bench.passMs(800);
    const [a, b] = [bench.ask(), bench.ask()];
    bench.end(a, 'failure');
    expect(bench.breaker.rampRatio(bench.nowUs)).toBe(0.4);
    bench.end(b, 'failure');
    expect(bench.breaker.rampRatio(bench.nowUs)).toBe(0.2);
    expect(bench.state).toBe('closed');
  });

  it('opens again when everything fails at the floor, too', () => {
    const bench = returned();
    const ran = bench.calls(100, 'failure', { everyMs: 0 });
    // five at the floor of a tenth
    expect({ ran, state: bench.state }).toEqual({ ran: 5, state: 'open' });
  });

  it('is left out with rampMs 0', () => {
    expect(returned({ rampMs: 0 }).calls(20, 'ignored', { everyMs: 0 })).toBe(20);
  });
});

describe('late results', () => {
  it.each<Outcome>(['failure', 'success'])(
    'of 20 calls in flight, 5 fail and isolate; 15 later ones end in %s and change nothing',
    (late) => {
      const bench = new Bench({ rampMs: 0 });
      const tokens = Array.from({ length: 20 }, () => bench.ask());
      for (const token of tokens.splice(0, 5)) bench.end(token, 'failure');
      expect(bench.changes).toEqual(['open errorCost 100']);
      for (const token of tokens.splice(0, 5)) bench.end(token, late); // while open
      expect(bench.breaker.isolationLeftUs(bench.nowUs)).toBe(100 * MS);
      bench.passMs(100);
      expect(bench.state).toBe('halfOpen');
      for (const token of tokens.splice(0, 5)) bench.end(token, late); // in half-open
      expect(bench.state).toBe('halfOpen');
      for (let i = 0; i < 3; i++) bench.end(bench.ask(), 'success');
      const costRatio = bench.breaker.errorCostRatio;
      for (const token of tokens) bench.end(token, late); // after recovery
      expect(bench.breaker.errorCostRatio).toBe(costRatio);
      expect(bench.changes).toEqual(['open errorCost 100', 'halfOpen timer 0', 'closed trial 0']);
    },
  );
});

describe('options', () => {
  it.each<[object, string]>([
    [{ minCall: 5 }, 'breaker.minCall is not an option; known: shortWindowSize'],
    [
      { minErrorCostMs: 1 },
      'breaker.minErrorCostMs belongs to the strict grade only: { strict: true }',
    ],
    [
      { strict: true, rampMs: 1 },
      'breaker.rampMs belongs to the default grade only, not to { strict: true }',
    ],
    [
      { strict: true, longWindowErrorRatio: 0.055 },
      'breaker.longWindowErrorRatio must be a whole percent in the strict grade, got 0.055',
    ],
    [{ strict: 1 }, 'breaker.strict must be true or false, got 1'],
    [{ epsilon: 1 }, 'breaker.epsilon must be a number from'],
    [{ epsilon: Number.NaN }, 'breaker.epsilon must be a number from'],
    [
      { shortWindowSize: 0 },
      'breaker.shortWindowSize must be a whole number from 1 to 1000000, got 0',
    ],
    [
      { minIsolationMs: 5000 },
      'breaker.maxIsolationMs must be at least breaker.minIsolationMs (5000), got 4000',
    ],
    [
      { halfOpenWindowSize: '3' },
      'breaker.halfOpenWindowSize must be a whole number from 0 to 1000, got "3"',
    ],
    [[], 'breaker must be an object, got an array of 0'],
  ])('%j is refused', (options, message) => {
    expect(() => createBreaker(options)).toThrow(message);
  });

  it('changes nothing when a change is refused', () => {
    const bench = new Bench();
    const before = bench.breaker.flags();
    expect(() => bench.breaker.configure({ minCalls: 9, epsilon: 7 })).toThrow(RangeError);
    expect(bench.breaker.flags()).toEqual(before);
    expect(before.map(({ name, value }) => [name, value])).toEqual([
      ['shortWindowSize', 8],
      ['longWindowSize', 800],
      ['shortWindowErrorRatio', 0.5],
      ['longWindowErrorRatio', 0.05],
      ['minFailedLatencyMultiple', 1.5],
      ['maxFailedLatencyMultiple', 2],
      ['epsilon', 0.02],
      ['costHalfLifeMs', 30_000],
      ['commonFaultMs', 1000],
      ['minCalls', 5],
      ['minIsolationMs', 100],
      ['maxIsolationMs', 4000],
      ['relapseMs', 20_000],
      ['isolationJitterRatio', 0], // the bench's own
      ['halfOpenWindowSize', 3],
      ['trialTimeoutMs', 5000],
      ['rampMs', 1000],
    ]);
  });
});
