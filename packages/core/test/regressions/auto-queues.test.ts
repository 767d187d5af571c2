import { seededRandom } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { AutoLimiter, resolveAutoOptions } from '../../src/limiter/auto.js';

interface Call {
  readonly startedUs: number;
  readonly endsUs: number;
  readonly inflight: number;
}

/** Calls in the order they came, in front of so many slots, behind an `auto` limiter. */
class Slots {
  readonly limiter: AutoLimiter;
  highest = 0;
  leastWorkUs = Number.POSITIVE_INFINITY;
  slowestUs = 0;
  refused = 0;
  done = 0;
  readonly #random = seededRandom(1);
  readonly #freeAtUs: number[];
  readonly #delayUs: number;
  #running: Call[] = [];
  #nowUs = 0;

  constructor(slots: number, delayUs = 0) {
    this.limiter = new AutoLimiter(resolveAutoOptions({}), { random: this.#random, nowUs: 0 });
    this.#freeAtUs = Array.from({ length: slots }, () => 0);
    this.#delayUs = delayUs;
  }

  /** Random arrivals; each needs a slot for `workUs` (a mean, if `spreads`), and `delayUs` after that. */
  run(
    seconds: number,
    perSecond: number,
    workUs: number,
    delayUs = this.#delayUs,
    spreads = false,
  ): void {
    const untilUs = this.#nowUs + seconds * 1e6;
    for (;;) {
      this.#nowUs += (-Math.log(1 - this.#random()) * 1e6) / perSecond;
      if (this.#nowUs >= untilUs) break;
      this.#finish(this.#nowUs);
      const share = spreads ? -Math.log(1 - this.#random()) : 1;
      this.#arrive(workUs * share, delayUs);
    }
    this.#nowUs = untilUs;
    this.#finish(untilUs);
  }

  forget(): void {
    this.highest = this.slowestUs = this.refused = this.done = 0;
  }

  #arrive(workUs: number, delayUs: number): void {
    const inflight = this.#running.length + 1;
    const nowUs = Math.floor(this.#nowUs);
    if (!this.limiter.admits(inflight)) {
      this.limiter.refused(nowUs);
      this.refused++;
      return;
    }
    this.limiter.started(nowUs, inflight);
    const slot = this.#freeAtUs.indexOf(Math.min(...this.#freeAtUs));
    const freeUs = Math.max(this.#nowUs, this.#freeAtUs[slot] as number) + workUs;
    this.#freeAtUs[slot] = freeUs;
    this.#running.push({ startedUs: nowUs, endsUs: freeUs + delayUs, inflight });
  }

  #finish(untilUs: number): void {
    this.#running.sort((a, b) => a.endsUs - b.endsUs);
    while (this.#running.length > 0 && (this.#running[0] as Call).endsUs <= untilUs) {
      const { startedUs, endsUs, inflight } = this.#running.shift() as Call;
      const latencyUs = Math.floor(endsUs) - startedUs;
      this.limiter.record('success', latencyUs, Math.floor(endsUs), inflight);
      this.done++;
      this.slowestUs = Math.max(this.slowestUs, latencyUs);
      this.highest = Math.max(this.highest, this.limiter.maxConcurrency);
      this.leastWorkUs = Math.min(this.leastWorkUs, this.limiter.estimates().minLatencyUs);
    }
  }
}

describe('auto', () => {
  it('does not take the calls of a bunch for calls of no work: it once believed in 1 us', () => {
    const thread = new Slots(1);
    for (let second = 0; second < 60; second++) {
      thread.run(0.02, 3000, 5000);
      thread.run(0.98, 20, 5000);
    }
    expect(thread.leastWorkUs).toBeGreaterThanOrEqual(2500);
  });

  it('does not climb where calls only wait: a cold start on five slots once went to 60, and a second of waiting', () => {
    const slots = new Slots(5);
    slots.run(10, 100, 100_000); // twice what they can do
    expect(slots.highest).toBeLessThanOrEqual(30);
    slots.forget();
    slots.run(20, 100, 100_000);
    expect(slots.slowestUs).toBeLessThanOrEqual(500_000);
    expect(slots.done).toBeGreaterThanOrEqual(970); // of 1000
  });

  it('does not take the calls that return first for all: ten slots once stood at a limit of 1 for five seconds', () => {
    const slots = new Slots(10);
    slots.run(2, 400, 100_000, 0, true);
    slots.forget();
    slots.run(8, 400, 100_000, 0, true);
    expect(slots.done).toBeGreaterThanOrEqual(720); // of 800
  });

  it('does not climb under light load: the overload that came then once met a limit of 60', () => {
    const thread = new Slots(1);
    thread.run(20, 100, 5000);
    expect(thread.limiter.maxConcurrency).toBeLessThanOrEqual(30);
  });

  it('does not take the bunches of a dependency that became ten times as slow for less capacity', () => {
    const service = new Slots(6, 50_000);
    service.run(25, 740, 3500);
    service.forget();
    service.run(6, 740, 3500, 500_000);
    service.forget();
    service.run(20, 740, 3500, 500_000);
    expect(service.refused).toBeLessThanOrEqual(150); // of 14 800
  });
});
