import { describe, expect, it } from '@jest/globals';
import {
  createLimiter,
  type Limiter,
  type MaxConcurrency,
  type Outcome,
  parseMaxConcurrency,
} from '../../src/index.js';

/** Calls that come evenly and take a given time, in front of a limiter. */
class Service {
  nowUs = 10_000_000;
  admitted = 0;
  refused = 0;
  least = Number.POSITIVE_INFINITY;
  most = 0;
  readonly limiter: Limiter;
  readonly #running: { endsUs: number; startedUs: number; inflight: number }[] = [];

  constructor(limit: MaxConcurrency) {
    this.limiter = createLimiter(parseMaxConcurrency(limit), {
      random: () => 0.5,
      nowUs: this.nowUs,
    });
  }

  /** Open loop. */
  run(seconds: number, perSecond: number, latencyUs: number, outcome: Outcome = 'success'): void {
    const untilUs = this.nowUs + seconds * 1_000_000;
    while (this.nowUs < untilUs) {
      this.#finish(this.nowUs, outcome);
      this.call(latencyUs);
      this.nowUs += 1_000_000 / perSecond;
    }
    this.#finish(this.nowUs, outcome);
  }

  call(latencyUs: number): void {
    const inflight = this.#running.length + 1;
    if (this.limiter.admits(inflight, this.nowUs, Number.POSITIVE_INFINITY)) {
      this.admitted++;
      this.limiter.started(this.nowUs, inflight);
      this.#running.push({ endsUs: this.nowUs + latencyUs, startedUs: this.nowUs, inflight });
    } else {
      this.refused++;
      this.limiter.refused(this.nowUs);
    }
    this.least = Math.min(this.least, this.limiter.maxConcurrency);
    this.most = Math.max(this.most, this.limiter.maxConcurrency);
  }

  /** Nothing ends and nothing is seen for so long; then all that was running ends at once. */
  freeze(seconds: number): void {
    this.nowUs += seconds * 1_000_000;
    this.#finish(Number.POSITIVE_INFINITY, 'success');
  }

  /** Counts anew. */
  mark(): void {
    this.admitted = this.refused = this.most = 0;
    this.least = Number.POSITIVE_INFINITY;
  }

  #finish(untilUs: number, outcome: Outcome): void {
    for (
      let first = this.#running[0];
      first !== undefined && first.endsUs <= untilUs;
      first = this.#running[0]
    ) {
      this.#running.shift();
      const atUs =
        untilUs === Number.POSITIVE_INFINITY ? this.nowUs : Math.min(first.endsUs, this.nowUs);
      this.limiter.record(outcome, atUs - first.startedUs, atUs, first.inflight);
    }
  }
}

const ENGINES: { name: string; limit: MaxConcurrency }[] = [
  { name: 'auto', limit: 'auto' },
  { name: 'timeout', limit: 'timeout' },
  { name: 'gradient', limit: 'gradient' },
];

describe.each(ENGINES)('$name', ({ limit }) => {
  it('serves calls of 25 us, lives through a window in which all fail, and is back within two', () => {
    const service = new Service(limit);
    service.run(20, 10_000, 25);
    service.mark();
    service.run(1, 10_000, 25, 'failure');
    expect(service.least).toBeGreaterThanOrEqual(1);
    service.run(2, 10_000, 25);
    service.mark();
    service.run(5, 10_000, 25);
    expect(service.refused).toBe(0);
  });

  it('keeps its upper bound when there is no knee to find', () => {
    const service = new Service(limit);
    service.run(30, 20_000, 50_000); // 1000 in flight if all are let in, and latency never rises
    expect(service.most).toBeLessThanOrEqual(10_000);
    expect(service.admitted).toBeGreaterThan(0);
  });

  it.each([0.3, 2, 30])(
    'is back within seconds after the process stood still for %d s',
    (seconds) => {
      const service = new Service(limit);
      service.run(20, 1000, 20_000); // 20 in flight
      service.freeze(seconds);
      service.run(5, 1000, 20_000);
      service.mark();
      service.run(5, 1000, 20_000);
      expect(service.refused / (service.admitted + service.refused)).toBeLessThanOrEqual(0.005);
    },
  );

  it('stays calm when the loop stands still for 20 ms, ten times a second', () => {
    const service = new Service(limit);
    service.run(20, 1000, 20_000);
    for (let i = 0; i < 50; i++) {
      service.run(0.08, 1000, 20_000);
      service.freeze(0.02);
    }
    service.mark();
    service.run(5, 1000, 20_000);
    expect(service.refused / (service.admitted + service.refused)).toBeLessThanOrEqual(0.005);
  });
});
