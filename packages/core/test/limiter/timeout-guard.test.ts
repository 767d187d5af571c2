import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { createGuard, type ElimitEvent, type Guard } from '../../src/index.js';

/** A guard whose calls have taken 100 ms each, and one of them is running. */
function guarded(onEvent?: (event: ElimitEvent) => void): { clock: VirtualClock; guard: Guard } {
  const clock = new VirtualClock();
  const guard = createGuard({
    limit: { timeoutMs: 500 },
    name: 'g',
    clock,
    registry: false,
    onEvent,
  });
  call(guard, clock, 100, 20);
  guard.tryAcquire();
  return { clock, guard };
}

function call(guard: Guard, clock: VirtualClock, latencyMs: number, times: number): void {
  for (let i = 0; i < times; i++) {
    const entry = guard.tryAcquire();
    clock.advanceMs(latencyMs);
    if (entry.admitted) entry.release('success');
  }
}

describe('the timeout limiter behind a guard', () => {
  // × 1.25 of the 100 ms that a call takes has to fit into what is left of 500 ms
  it.each([
    { waitedMs: 374, admitted: true },
    { waitedMs: 376, admitted: false },
  ])(
    'counts from the arrival: $waitedMs ms unseen, admitted: $admitted',
    ({ waitedMs, admitted }) => {
      const { clock, guard } = guarded();
      const entry = guard.tryAcquire({ arrivedUs: clock.nowUs() - waitedMs * 1000 });
      expect(entry.admitted).toBe(admitted);
      if (!entry.admitted) expect(entry.reason).toBe('deadline');
    },
  );

  it('refuses a call that waited for all of its timeout, also when nobody else is there', () => {
    const clock = new VirtualClock();
    const guard = createGuard({ limit: { timeoutMs: 500 }, clock, registry: false });
    const arrivedUs = clock.nowUs() - 500_000;
    expect(guard.tryAcquire({ arrivedUs })).toMatchObject({ admitted: false, reason: 'deadline' });
  });

  it.each([
    { timeoutMs: 1000, waitedMs: 376, admitted: false }, // a carried timeout can only shorten
    { timeoutMs: 130, waitedMs: 0, admitted: true },
    { timeoutMs: 130, waitedMs: 10, admitted: false },
  ])(
    'carried $timeoutMs ms, $waitedMs ms unseen, admitted: $admitted',
    ({ timeoutMs, waitedMs, admitted }) => {
      const { clock, guard } = guarded();
      const arrivedUs = clock.nowUs() - waitedMs * 1000;
      expect(guard.tryAcquire({ timeoutMs, arrivedUs }).admitted).toBe(admitted);
    },
  );

  it('warns once when the unloaded latency exceeds half of the timeout', () => {
    const events: ElimitEvent[] = [];
    const { clock, guard } = guarded((event) => events.push(event));
    guard.configure({ limit: { timeoutMs: 180 } });
    call(guard, clock, 100, 50);
    const warnings = events.filter(({ type }) => type === 'warning');
    expect(warnings).toEqual([
      expect.objectContaining({ code: 'WARN_TIMEOUT_TOO_SHORT', name: 'g' }),
    ]);
  });
});
