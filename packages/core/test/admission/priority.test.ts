import {
  type ConfigurableLimiter,
  createGuard,
  type EstimatingLimiter,
  type Guard,
  type Permit,
  type Priority,
} from '@elimit/core';
import { seededRandom, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function make(limit: number): Guard {
  return createGuard({ limit, clock: new VirtualClock(), registry: false });
}

/** Takes slots of one class until one is refused; how many it got. */
function fill(guard: Guard, priority: Priority, most = 1000): Permit[] {
  const permits: Permit[] = [];
  for (let i = 0; i < most; i++) {
    const entry = guard.tryAcquire({ priority });
    if (!entry.admitted) break;
    permits.push(entry);
  }
  return permits;
}

/** Lets the averaged shares settle on what is in flight now: refused calls look, but change nothing. */
function settleShares(guard: Guard): void {
  for (let i = 0; i < 5_000; i++) {
    const entry = guard.tryAcquire({ priority: 'sheddable' });
    if (entry.admitted) entry.revoke('queue');
  }
}

/** An adaptive engine that is turned by hand. */
class Dial implements ConfigurableLimiter, EstimatingLimiter {
  constructor(
    public maxConcurrency: number,
    readonly ceiling: number,
  ) {}

  admits(inflight: number): boolean {
    return inflight <= this.maxConcurrency;
  }

  started(): void {}
  refused(): void {}
  record(): void {}

  estimates() {
    return { minLatencyUs: -1, maxQps: -1, exploreRatio: -1 };
  }

  configure(): void {}

  flags(): ReturnType<ConfigurableLimiter['flags']> {
    const { ceiling } = this;
    return [{ name: 'maxConcurrency', value: ceiling, default: ceiling, live: true }];
  }
}

describe('priority classes', () => {
  it.each<Priority>(['critical', 'default', 'sheddable'])(
    'cost nothing while %s is the only one in use',
    (priority) => {
      expect(fill(make(100), priority)).toHaveLength(100);
    },
  );

  it.each<{ critical: number; limit: number; room: number }>([
    // ln(0.0005) ÷ ln(critical ÷ limit), rounded up
    { critical: 60, limit: 100, room: 100 - 60 - 15 },
    { critical: 10, limit: 100, room: 100 - 10 - 4 },
    { critical: 90, limit: 100, room: 0 }, // 73 would be needed, a quarter of the limit is the most: 25
    { critical: 300, limit: 1000, room: 1000 - 300 - 7 },
    { critical: 1, limit: 2, room: 0 },
  ])(
    'leave room above default for $critical critical calls of $limit',
    ({ critical, limit, room }) => {
      const guard = make(limit);
      expect(fill(guard, 'critical', critical)).toHaveLength(critical);
      settleShares(guard);
      expect(fill(guard, 'default')).toHaveLength(room);
      // what default may not have, critical can
      expect(fill(guard, 'critical')).toHaveLength(limit - critical - room);
    },
  );

  it('put sheddable below default', () => {
    const guard = make(100);
    fill(guard, 'critical', 30);
    fill(guard, 'default', 30);
    settleShares(guard);
    // sheddable: ln(0.01) ÷ ln(0.6) = 9.02, so 10 below the limit; default: ln(0.0005) ÷ ln(0.3) = 6.3, so 7
    expect(fill(guard, 'sheddable')).toHaveLength(100 - 60 - 10);
    expect(fill(guard, 'default')).toHaveLength(3);
    expect(fill(guard, 'critical')).toHaveLength(7);
    expect(guard.inflight).toBe(100);
  });

  it.each([1, 2, 3, 5, 100])('let a lone call of any class through at a limit of %d', (limit) => {
    const guard = make(limit);
    const permits = fill(guard, 'critical');
    settleShares(guard);
    for (const permit of permits) permit.release('success');
    for (const priority of ['sheddable', 'default', 'critical'] as const) {
      const entry = guard.tryAcquire({ priority });
      expect(entry.admitted).toBe(true);
      if (entry.admitted) entry.release('success');
    }
  });

  it('need no room without a limit', () => {
    const guard = createGuard({ limit: 'unlimited', clock: new VirtualClock(), registry: false });
    fill(guard, 'critical', 500);
    expect(fill(guard, 'sheddable', 500)).toHaveLength(500);
  });

  it('put the reserve of default on top of an adaptive limit, as far as the engine itself may go', () => {
    const limit = { type: 'gradient', initialMaxConcurrency: 100, maxConcurrency: 110 };
    const guard = createGuard({ limit, clock: new VirtualClock(), registry: false });
    fill(guard, 'critical', 60);
    settleShares(guard);
    expect(guard.maxConcurrency).toBe(110);
    expect(fill(guard, 'default')).toHaveLength(110 - 60 - 15); // 15 as above
    expect(fill(guard, 'critical')).toHaveLength(15);
    guard.configure({ limit: 100 });
    expect(guard.maxConcurrency).toBe(100);
  });

  it('let critical calls have all of an adaptive limit that was cut and half of it on top, while the others come down to it', () => {
    const engine = new Dial(100, 200);
    const guard = createGuard({ limit: engine, clock: new VirtualClock(), registry: false });
    fill(guard, 'critical', 10);
    const others = fill(guard, 'default', 90);
    expect(guard.inflight).toBe(100);
    engine.maxConcurrency = 60;
    expect(fill(guard, 'default')).toHaveLength(0);
    const critical = 10 + fill(guard, 'critical').length;
    expect(critical).toBeGreaterThanOrEqual(60);
    expect(critical).toBeLessThanOrEqual(90);
    for (const permit of others) permit.release('success');
    expect(guard.inflight).toBe(critical);
    expect(fill(guard, 'default')).toHaveLength(0);
  });

  it('put nothing on top where critical calls alone are too many, so that an adaptive limit is kept', () => {
    const guard = createGuard({
      limit: new Dial(100, 200),
      clock: new VirtualClock(),
      registry: false,
    });
    const inflight = fill(guard, 'critical');
    expect(inflight.length).toBeGreaterThan(100);
    for (let i = 0; i < 50_000; i++) {
      inflight.shift()?.release('success');
      inflight.push(...fill(guard, 'critical'));
    }
    expect(guard.inflight).toBe(100);
    expect(guard.maxConcurrency).toBe(100);
  });

  it('never have more than an adaptive engine may ever set', () => {
    const engine = new Dial(100, 105);
    const guard = createGuard({ limit: engine, clock: new VirtualClock(), registry: false });
    fill(guard, 'default', 100);
    engine.maxConcurrency = 60;
    expect(fill(guard, 'critical')).toHaveLength(5);
  });

  it('at twice the capacity refuse hardly any critical call, and waste no slot', () => {
    // one server of 1000/s with exponential gaps, limit 50; critical 0.6, default 0.8, sheddable 0.6 of capacity
    const clock = new VirtualClock();
    const guard = createGuard({ limit: 50, clock, registry: false });
    const random = seededRandom(22);
    const gapUs = (perSecond: number) => Math.ceil((-Math.log(1 - random()) * 1e6) / perSecond);
    const classes: Priority[] = [
      'critical',
      'critical',
      'critical',
      'default',
      'default',
      'default',
      'default',
      'sheddable',
      'sheddable',
      'sheddable',
    ];
    const offered = { critical: 0, default: 0, sheddable: 0 };
    const refused = { critical: 0, default: 0, sheddable: 0 };
    const queue: Permit[] = [];
    let idleUs = 0;
    let arrivalUs = gapUs(2000);
    let doneUs = Number.POSITIVE_INFINITY;
    for (let nowUs = 0; nowUs < 100e6; ) {
      const nextUs = Math.min(arrivalUs, doneUs);
      if (queue.length === 0) idleUs += nextUs - nowUs;
      clock.advance(nextUs - nowUs);
      nowUs = nextUs;
      if (arrivalUs <= doneUs) {
        const priority = classes[Math.floor(random() * 10)] as Priority;
        offered[priority]++;
        const entry = guard.tryAcquire({ priority });
        if (!entry.admitted) refused[priority]++;
        else if (queue.push(entry) === 1) doneUs = nowUs + gapUs(1000);
        arrivalUs = nowUs + gapUs(2000);
      } else {
        queue.shift()?.release('success');
        doneUs = queue.length > 0 ? nowUs + gapUs(1000) : Number.POSITIVE_INFINITY;
      }
    }
    expect(offered.critical).toBeGreaterThan(59_000);
    expect(refused.critical / offered.critical).toBeLessThan(0.002);
    expect(refused.sheddable / offered.sheddable).toBeGreaterThan(0.95);
    expect(idleUs).toBeLessThan(0.01 * 100e6);
  }, 60_000);
});
