import { seededRandom } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { AutoLimiter, resolveAutoOptions } from '../../src/limiter/auto.js';
import type { Outcome } from '../../src/outcome.js';

interface Ending {
  atUs: number;
  readonly startUs: number;
  readonly inflight: number;
  readonly outcome: Outcome;
}

/** A service with servers and a queue, and clients that come whatever happens; all on one virtual clock. */
class Bench {
  readonly limiter: AutoLimiter;
  nowUs: number;
  inflight = 0;
  refused = 0;
  offered = 0;
  lowest = Infinity;
  isWhole = true;
  highest = 0;
  readonly #random = seededRandom(11);
  readonly #ends: Ending[] = [];
  #freeAtUs: number[];

  constructor(options: object = {}, servers = 4, nowUs = 1_000_000) {
    this.nowUs = nowUs;
    this.limiter = new AutoLimiter(resolveAutoOptions(options), { random: this.#random, nowUs });
    this.#freeAtUs = Array.from({ length: servers }, () => nowUs);
  }

  /** `perS` calls a second for so long; each works `serviceUs` on a server, then `delayUs` outside of one. */
  run(
    seconds: number,
    perS: number,
    serviceUs: number,
    delayUs = 0,
    outcome: Outcome = 'success',
  ): void {
    const endUs = this.nowUs + seconds * 1e6;
    for (;;) {
      const nextUs = this.nowUs + (-Math.log(1 - this.#random()) / perS) * 1e6;
      this.#finish(Math.min(nextUs, endUs));
      if (nextUs >= endUs) break;
      this.nowUs = nextUs;
      this.#arrive(serviceUs, delayUs, outcome);
    }
    this.nowUs = endUs;
  }

  /** Nothing ends and nobody is let in for so long: the loop is blocked. */
  block(us: number): void {
    this.nowUs += us;
    for (const end of this.#ends) end.atUs = Math.max(end.atUs, this.nowUs);
    this.#freeAtUs = this.#freeAtUs.map((atUs) => Math.max(atUs, this.nowUs));
  }

  get refusedShare(): number {
    return this.offered === 0 ? 0 : this.refused / this.offered;
  }

  forget(): void {
    this.offered = this.refused = this.highest = 0;
    this.lowest = Infinity;
  }

  #arrive(serviceUs: number, delayUs: number, outcome: Outcome): void {
    const now = Math.floor(this.nowUs);
    this.offered++;
    if (!this.limiter.admits(this.inflight + 1)) {
      this.refused++;
      this.limiter.refused(now);
      return;
    }
    this.inflight++;
    this.limiter.started(now, this.inflight);
    const server = this.#freeAtUs.indexOf(Math.min(...this.#freeAtUs));
    const workUs = serviceUs * -Math.log(1 - this.#random());
    const doneUs = Math.max(this.nowUs, this.#freeAtUs[server] as number) + workUs;
    this.#freeAtUs[server] = doneUs;
    this.#plan({ atUs: doneUs + delayUs, startUs: now, inflight: this.inflight, outcome });
  }

  /** Keeps the ends in order of time; most come last. */
  #plan(end: Ending): void {
    let i = this.#ends.length;
    while (i > 0 && (this.#ends[i - 1] as Ending).atUs > end.atUs) i--;
    this.#ends.splice(i, 0, end);
  }

  #finish(untilUs: number): void {
    while (this.#ends.length > 0 && (this.#ends[0]?.atUs ?? 0) <= untilUs) {
      const end = this.#ends.shift() as Ending;
      this.inflight--;
      const now = Math.floor(end.atUs);
      this.limiter.record(end.outcome, now - end.startUs, now, end.inflight);
      const { maxConcurrency } = this.limiter;
      this.isWhole &&= Number.isInteger(maxConcurrency);
      this.lowest = Math.min(this.lowest, maxConcurrency);
      this.highest = Math.max(this.highest, maxConcurrency);
    }
  }
}

describe('inputs that broke others', () => {
  it('a handler of 25 us is never held back, also after a time in which every call failed', () => {
    const bench = new Bench({}, 1);
    bench.run(6, 10_000, 25);
    expect(bench.refused).toBe(0);
    bench.run(1, 10_000, 0, 0, 'failure');
    expect(bench.lowest).toBeGreaterThanOrEqual(20);
    bench.forget();
    bench.run(3, 10_000, 25);
    expect(bench.refused).toBe(0);
    expect(bench.limiter.estimates().minLatencyUs).toBeGreaterThan(0);
    expect(bench.isWhole).toBe(true);
  });

  it('latency 0 and a clock that stands still give a whole limit', () => {
    const { limiter } = new Bench();
    for (let i = 0; i < 20_000; i++) {
      limiter.started(5_000_000, 1);
      limiter.record(i % 3 === 0 ? 'failure' : 'success', 0, 5_000_000, 1);
    }
    expect(limiter.maxConcurrency).toBe(20); // no window ends, and calls that come singly ask for no more
    for (let i = 0; i < 20_000; i++) {
      limiter.started(5_000_000 + 100 * i, 1);
      limiter.record('success', 0, 5_000_000 + 100 * i, 1);
    }
    expect(limiter.maxConcurrency).toBeGreaterThanOrEqual(20);
  });

  it('a service without a knee stops at the upper bound', () => {
    const bench = new Bench({ maxConcurrency: 300 }, 1);
    bench.run(4, 20_000, 0, 50_000);
    expect(bench.highest).toBe(300);
    expect(bench.limiter.maxConcurrency).toBe(300);
  });

  it('a blocked loop does not collapse the limit, and leaves nothing behind', () => {
    const bench = new Bench();
    bench.run(20, 800, 2500, 40_000); // half of 1600 a second
    bench.forget();
    bench.block(2e6);
    bench.run(3, 800, 2500, 40_000);
    bench.block(0.3e6);
    bench.run(3, 800, 2500, 40_000);
    expect(bench.lowest).toBeGreaterThanOrEqual(20);
    bench.forget();
    bench.run(10, 800, 2500, 40_000);
    expect(bench.refusedShare).toBeLessThan(0.001);
  });
});

describe('what it believes', () => {
  it('finds the work and the capacity of a service in overload', () => {
    const bench = new Bench();
    bench.run(30, 3200, 2500, 40_000); // twice what it can do
    const { minLatencyUs, maxQps, exploreRatio } = bench.limiter.estimates();
    expect(Math.abs(minLatencyUs / 42_500 - 1)).toBeLessThan(0.06);
    expect(Math.abs(maxQps / 1600 - 1)).toBeLessThan(0.06);
    expect(exploreRatio).toBe(-1);
    expect(bench.limiter.maxConcurrency).toBeGreaterThan(72); // 68 are being worked on
    expect(bench.limiter.maxConcurrency).toBeLessThan(110);
  });

  it('knows nothing before the first call has ended', () => {
    expect(new Bench().limiter.estimates()).toEqual({
      minLatencyUs: -1,
      maxQps: -1,
      exploreRatio: -1,
    });
  });

  it('a calm hour of silence changes nothing', () => {
    const bench = new Bench();
    bench.run(20, 1200, 2500, 40_000);
    const before = bench.limiter.maxConcurrency;
    bench.nowUs += 3600e6;
    bench.forget();
    bench.run(2, 1200, 2500, 40_000);
    expect(bench.refused).toBe(0);
    expect(bench.limiter.maxConcurrency).toBeGreaterThanOrEqual(Math.min(before, 60));
  });

  it('refusals of others and quick failures teach it nothing', () => {
    const bench = new Bench();
    bench.run(20, 3200, 2500, 40_000);
    const { minLatencyUs } = bench.limiter.estimates();
    const { limiter } = bench;
    for (let i = 0; i < 5000; i++) {
      const nowUs = Math.floor(bench.nowUs) + i * 100;
      limiter.started(nowUs, 10);
      limiter.record(i % 2 === 0 ? 'ignored' : 'failure', 1000, nowUs, 10);
    }
    expect(limiter.estimates().minLatencyUs).toBe(minLatencyUs);
  });

  it('a client that left early never makes the work look shorter', () => {
    const bench = new Bench();
    bench.run(20, 800, 2500, 40_000);
    const { minLatencyUs } = bench.limiter.estimates();
    const { limiter } = bench;
    for (let i = 0; i < 20_000; i++) {
      const nowUs = Math.floor(bench.nowUs) + i * 1000;
      limiter.started(nowUs, 10);
      limiter.record('abandoned', 1000, nowUs, 10);
    }
    expect(limiter.estimates().minLatencyUs).toBeGreaterThanOrEqual(minLatencyUs * 0.99); // 1 ms would be 0.02
  });
});

describe('options', () => {
  it('have their defaults, and bounds that hold together', () => {
    expect(resolveAutoOptions({})).toEqual({
      initialMaxConcurrency: 20,
      minConcurrency: 1,
      maxConcurrency: 10_000,
      queueSize: 25,
      queueMs: 750,
      remeasureIntervalMs: 15_000,
      remeasureReduceRatio: 0.8,
      sampleWindowMs: 1500,
      minSampleCount: 20,
      maxSampleCount: 4000,
    });
    expect(resolveAutoOptions({ maxConcurrency: 7 }).initialMaxConcurrency).toBe(7);
    expect(() => resolveAutoOptions({ minConcurrency: 9, maxConcurrency: 7 })).toThrow(RangeError);
    expect(() => resolveAutoOptions({ initialMaxConcurrency: 9, maxConcurrency: 7 })).toThrow(
      RangeError,
    );
  });

  it.each(['maxExploreRatio', 'emaAlpha', 'failPunishRatio', 'samplingIntervalMs'])(
    'brpc’s %s has no meaning here, and the error points to strict',
    (name) => {
      expect(() => resolveAutoOptions({ [name]: 1 })).toThrow(/strict: true/);
    },
  );

  it('bounds move while running', () => {
    const { limiter } = new Bench();
    limiter.configure({ maxConcurrency: 8 });
    expect(limiter.maxConcurrency).toBe(8);
    limiter.configure({ maxConcurrency: 100, minConcurrency: 30 });
    expect(limiter.maxConcurrency).toBe(30);
    expect(() => limiter.configure({ initialMaxConcurrency: 5 })).toThrow(/fixed at construction/);
    expect(limiter.flags().find((flag) => flag.name === 'minConcurrency')?.value).toBe(30);
  });
});
