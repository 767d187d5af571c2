import { VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';

it.each<{ it: string; advance: (clock: VirtualClock, ms: number) => unknown }>([
  { it: 'advanceMs', advance: (clock, ms) => clock.advanceMs(ms) },
  { it: 'advanceMsAsync', advance: (clock, ms) => clock.advanceMsAsync(ms) },
])('a timer that takes time itself does not end in time going back: $it', async ({ advance }) => {
  const clock = new VirtualClock(0);
  clock.setTimeout(() => clock.advanceMs(50), 5); // a handler that burns 50 ms
  await advance(clock, 10);
  expect(clock.nowUs()).toBe(55_000);
});
