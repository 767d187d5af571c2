import { describe, expect, it } from '@jest/globals';
import type { Outcome } from '../../src/index.js';
import { resolveTimeoutOptions, TimeoutLimiter } from '../../src/limiter/timeout.js';

const FAR = Number.POSITIVE_INFINITY;

/** A limiter with a clock beside it. */
class Bench {
  nowUs = 10_000_000;
  readonly limiter: TimeoutLimiter;

  constructor(options: object = {}) {
    this.limiter = new TimeoutLimiter(resolveTimeoutOptions(options));
  }

  admits(inflight: number, remainingMs = FAR): boolean {
    return this.limiter.admits(inflight, this.nowUs, remainingMs * 1000);
  }

  /** `n` calls, one per `gapMs`, each begun with `inflight` in flight. */
  play(
    n: number,
    gapMs: number,
    latencyMs: number,
    inflight = 1,
    outcome: Outcome = 'success',
  ): this {
    for (let i = 0; i < n; i++) {
      this.nowUs += gapMs * 1000;
      this.limiter.started(this.nowUs, inflight);
      this.limiter.record(outcome, latencyMs * 1000, this.nowUs, inflight);
    }
    return this;
  }
}

/** A queue of one server, 10 ms a call, that has been full for long: 20 in flight, so 200 ms each. */
const saturated = (options: object = {}): Bench => {
  const bench = new Bench(options).play(40, 10, 10); // the unloaded latency: 10 ms
  bench.play(400, 10, 200, 20);
  return bench;
};

/** 30 ms a call, then a minute of three seconds a call. */
const slow = (): Bench => {
  const bench = new Bench({ timeoutMs: 500 }).play(100, 10, 30, 3);
  for (let s = 0; s < 60; s++) bench.play(1, 3000, 3000);
  return bench;
};

describe('before anything is known', () => {
  it.each<{ it: string; inflight: number; remainingMs?: number; admits: boolean }>([
    { it: 'takes up to maxConcurrency', inflight: 100, admits: true },
    { it: 'takes no more', inflight: 101, admits: false },
    {
      it: 'refuses a deadline that has passed, also for a lone call',
      inflight: 1,
      remainingMs: 0,
      admits: false,
    },
    {
      it: 'takes a call with hardly any time left',
      inflight: 100,
      remainingMs: 0.001,
      admits: true,
    },
  ])('$it', ({ inflight, remainingMs = FAR, admits }) => {
    expect(new Bench().admits(inflight, remainingMs)).toBe(admits);
  });

  it('is bounded by maxConcurrency when 500 calls come at once', () => {
    const bench = new Bench({ timeoutMs: 500 });
    let inflight = 0;
    for (let i = 0; i < 500; i++)
      if (bench.admits(inflight + 1)) bench.limiter.started(bench.nowUs, ++inflight);
    expect(inflight).toBe(100);
  });
});

describe('without a queue', () => {
  it('has no limit but maxConcurrency while the unloaded latency fits', () => {
    expect(new Bench().play(100, 10, 300, 30).limiter.maxConcurrency).toBe(100);
  });

  it('takes carried timeouts that the unloaded latency fits into with a margin, and no others', () => {
    const bench = new Bench().play(100, 10, 80, 8); // 80 ms / 0.8 = 100 ms
    expect(bench.admits(2, 101)).toBe(true);
    expect(bench.admits(2, 99)).toBe(false);
    expect(bench.admits(1, 99)).toBe(true); // nobody else: it may find out
  });

  it('leaves a lone call through when not even the unloaded latency fits', () => {
    const bench = new Bench().play(100, 1000, 600);
    expect(bench.limiter.maxConcurrency).toBe(1);
    expect(bench.admits(1)).toBe(true);
    expect(bench.admits(2)).toBe(false);
  });
});

describe('with a queue', () => {
  it('admits as many as will be done in time', () => {
    const { limiter } = saturated({ timeoutMs: 500 });
    // 10 ms for each call ahead: 0.8 × 500 ms leaves room for fewer than 40, and for more than 15
    expect(limiter.maxConcurrency).toBeGreaterThan(15);
    expect(limiter.maxConcurrency).toBeLessThan(40);
  });

  it('admits fewer of those that carry a shorter timeout', () => {
    const bench = saturated({ timeoutMs: 500 });
    const most = (remainingMs: number): number => {
      let inflight = 0;
      while (bench.admits(inflight + 1, remainingMs)) inflight++;
      return inflight;
    };
    expect(most(FAR)).toBe(bench.limiter.maxConcurrency);
    expect(most(500)).toBe(most(FAR));
    expect(most(250)).toBeLessThan(most(500));
    expect(most(250)).toBeGreaterThan(2);
    expect(most(1)).toBe(1);
  });

  it('never admits more for a carried timeout longer than its own', () => {
    const bench = saturated({ timeoutMs: 500 });
    expect(bench.admits(bench.limiter.maxConcurrency + 1, 60_000)).toBe(false);
  });

  it('takes less of the time with a smaller safety', () => {
    const half = saturated({ timeoutMs: 500, safety: 0.4 }).limiter.maxConcurrency;
    expect(half).toBeLessThan(saturated({ timeoutMs: 500 }).limiter.maxConcurrency);
  });

  it('finds out when there is room again', () => {
    const bench = saturated({ timeoutMs: 500 });
    const before = bench.limiter.maxConcurrency;
    for (let i = 0; i < 100; i++) {
      bench.limiter.refused(bench.nowUs);
      bench.play(20, 1, 10, before); // ten times as fast, and as many want in
    }
    expect(bench.limiter.maxConcurrency).toBe(100);
  });
});

describe('a slow minute', () => {
  it('leaves lone calls through, and is over five seconds after it', () => {
    const bench = slow();
    expect(bench.admits(1)).toBe(true);
    for (let window = 0; window < 25; window++) {
      const inflight = bench.limiter.maxConcurrency; // as many as it lets in, of many more that come
      bench.limiter.refused(bench.nowUs);
      bench.play(Math.ceil((200 * inflight) / 30), 30 / inflight, 30, inflight);
    }
    expect(bench.limiter.maxConcurrency).toBe(100);
  });

  it('is forgotten when no call has confirmed it for expireMs', () => {
    const bench = new Bench({ timeoutMs: 500, expireMs: 2000 }).play(100, 200, 700);
    expect(bench.admits(2)).toBe(false);
    bench.nowUs += 2_801_000; // 4 × 700 ms: calls that slow get the time to confirm
    expect(bench.admits(100)).toBe(true);
    bench.limiter.started(bench.nowUs, 1);
    expect(bench.limiter.maxConcurrency).toBe(100);
  });
});

describe('what is measured', () => {
  it.each<{ it: string; outcome: Outcome; latencyMs: number }>([
    { it: 'no ignored call', outcome: 'ignored', latencyMs: 5000 },
    { it: 'no fast failure: it would pass for a fast service', outcome: 'failure', latencyMs: 1 },
    {
      it: 'no client that left before an answer could have come',
      outcome: 'abandoned',
      latencyMs: 1,
    },
  ])('$it', ({ outcome, latencyMs }) => {
    const [told, left] = [1, 2].map(() => new Bench().play(100, 10, 80, 8)) as [Bench, Bench];
    told.play(1000, 0, latencyMs, 1, outcome);
    for (const remainingMs of [90, 95, 99, 101, 110]) {
      expect(told.admits(2, remainingMs)).toBe(left.admits(2, remainingMs));
    }
  });

  it.each<Outcome>(['failure', 'abandoned'])('a slow %s, like any slow call', (outcome) => {
    const bench = new Bench({ timeoutMs: 500 }).play(100, 10, 80, 8);
    bench.play(5000, 10, 900, 8, outcome);
    expect(bench.limiter.maxConcurrency).toBeLessThan(100);
  });
});

describe('the margin', () => {
  it('grows while answers come later than predicted, and shrinks slowly after', () => {
    const bench = new Bench().play(100, 10, 80, 8);
    expect(bench.admits(2, 101)).toBe(true); // × 1.25
    for (let i = 0; i < 10; i++) bench.play(4, 10, 60, 2).play(1, 10, 200, 2);
    expect(bench.admits(2, 101)).toBe(false);
  });
});

describe('the warning', () => {
  it('names the setting when the unloaded latency exceeds half of the timeout', () => {
    expect(new Bench({ timeoutMs: 500 }).play(100, 10, 249).limiter.warning()).toBeUndefined();
    expect(new Bench({ timeoutMs: 500 }).play(100, 10, 260).limiter.warning()).toEqual({
      code: 'WARN_TIMEOUT_TOO_SHORT',
      message:
        'timeoutMs 500 is less than twice the unloaded latency (260 ms): calls are refused although the service is healthy',
    });
  });
});

describe('options', () => {
  it.each<[options: object, message: string]>([
    [{ timeoutMs: 0 }, 'timeout.timeoutMs must be a whole number from 1 to 2147483647, got 0'],
    [
      { maxConcurrency: 0 },
      'timeout.maxConcurrency must be a whole number from 1 to 2147483647, got 0',
    ],
    [{ safety: 1.01 }, 'timeout.safety must be a number from 0.1 to 1, got 1.01'],
    [{ timeout: 5 }, 'timeout.timeout is not an option; known: timeoutMs, maxConcurrency, safety'],
    [
      { failPunishRatio: 1 },
      "timeout.failPunishRatio has no meaning in the default grade; it belongs to { type: 'timeout', strict: true }",
    ],
  ])('%j is refused', (options, message) => {
    expect(() => resolveTimeoutOptions(options)).toThrow(message);
  });

  it('change while running, all or none of them', () => {
    const { limiter } = new Bench();
    limiter.configure({ maxConcurrency: 7 });
    expect(limiter.maxConcurrency).toBe(7);
    expect(() => limiter.configure({ maxConcurrency: 9, timeoutMs: -1 })).toThrow(
      'timeout.timeoutMs',
    );
    expect(() => limiter.configure({ errorPunish: true })).toThrow('strict: true');
    expect(limiter.maxConcurrency).toBe(7);
  });
});
