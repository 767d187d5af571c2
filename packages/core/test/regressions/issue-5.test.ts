import { createBreakerCluster, ErrorCostBreaker, NO_TOKEN } from '@elimit/core';
import { expect, it } from '@jest/globals';

const MS = 1000;
const EACH_MS = 25; // 40 calls a second for each node

/** Five nodes, called in turn; a call that one refuses goes to the next. Counts what callers and operators notice. */
function play(untilMs: number, isDown: (node: number, ms: number) => boolean) {
  const cluster = createBreakerCluster();
  const isolations: number[] = [0, 0, 0, 0, 0];
  const nodes = isolations.map(
    (_, node) =>
      new ErrorCostBreaker(
        {},
        {
          cluster,
          random: () => 0.5,
          onChange: ({ state }) => {
            if (state === 'open') isolations[node] = (isolations[node] ?? 0) + 1;
          },
        },
      ),
  );
  let [failed, refused, first] = [0, 0, 0];
  for (let ms = 0; ms < untilMs; ms += EACH_MS / nodes.length) {
    let tried = 0;
    for (; tried < nodes.length; tried++) {
      const node = (first + tried) % nodes.length;
      const breaker = nodes[node] as ErrorCostBreaker;
      const token = breaker.tryCall(ms * MS);
      if (token === NO_TOKEN) continue;
      breaker.record(isDown(node, ms) ? 'failure' : 'success', MS, ms * MS, token);
      if (isDown(node, ms)) failed += 1;
      break;
    }
    if (tried === nodes.length) refused += 1;
    first += 1;
  }
  return { failed, refused, isolations };
}

it('a node that is down for 2 s of every 10 s costs callers 9 calls the first time, and 2 each time after (5 before)', () => {
  const flaps = (times: number) =>
    play(10_000 * (times + 1), (node, ms) => node === 0 && ms >= 10_000 && ms % 10_000 < 2000);
  expect(flaps(1)).toEqual({ failed: 9, refused: 0, isolations: [5, 0, 0, 0, 0] });
  expect(flaps(8)).toEqual({ failed: 9 + 7 * 2, refused: 0, isolations: [5 + 7, 0, 0, 0, 0] });
});

it.each([50, 100, 300, 900])(
  'a fault of all nodes for %i ms isolates nobody, and costs only the calls made in it',
  (blipMs) => {
    const isDown = (_node: number, ms: number) => ms >= 10_000 && ms % 10_000 < blipMs;
    const calls = (6 * blipMs) / (EACH_MS / 5);
    expect(play(70_000, isDown)).toEqual({
      failed: calls,
      refused: 0,
      isolations: [0, 0, 0, 0, 0],
    });
  },
);

it('a fault of all nodes for a minute does isolate them: callers wait for nobody, and servers are left alone', () => {
  const { failed, refused } = play(70_000, (_node, ms) => ms >= 10_000);
  expect(failed).toBeLessThan(350); // a second and a little, then a trial now and then
  expect(refused).toBeGreaterThan(11_600);
});
