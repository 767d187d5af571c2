import type { Candidate } from '@elimit/client';
import { seededRandom } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { createBalancer } from '../src/balancer/create.js';
import { LoadLatency } from '../src/load-latency.js';

const candidate = (origin: string, facts: Partial<Candidate> = {}): Candidate => ({
  origin,
  weight: 1,
  inflight: 0,
  loadLatencyUs: 0,
  ...facts,
});
const order = (
  name: Parameters<typeof createBalancer>[1],
  candidates: Candidate[],
  n: number,
  random = () => 0,
) => {
  const balancer = createBalancer('balancer', name, random);
  return Array.from({ length: n }, () => balancer.pick(candidates).origin).join('');
};
const abc = [candidate('a'), candidate('b'), candidate('c')];

describe('round robin', () => {
  it('takes one after the other', () => {
    expect(order('roundRobin', abc, 7)).toBe('abcabca');
  });

  it('is fair to those that are left when some are out', () => {
    const balancer = createBalancer('balancer', 'roundRobin', () => 0);
    const [a, b, c] = abc as [Candidate, Candidate, Candidate];
    const picked = [
      [a, b, c],
      [b, c],
      [a, b, c],
      [b, c],
      [a, b, c],
    ].map((candidates) => balancer.pick(candidates).origin);
    expect(picked.join('')).toBe('abcbc'); // a was asked three times of five: its share is 1, theirs is 2;
  });

  it('starts anywhere', () => {
    // 0.0001 × 65536 = 6.55, so 6: a; 0.00002 × 65536 = 1.3, so 1: b
    expect(order('roundRobin', abc, 3, () => 0.0001)).toBe('abc');
    expect(order('roundRobin', abc, 3, () => 0.00002)).toBe('bca');
  });
});

it('random gives everyone the same share', () => {
  const picked = order('random', abc, 30_000, seededRandom(7));
  for (const origin of 'abc') {
    const share = picked.split(origin).length - 1;
    expect(Math.abs(share - 10_000)).toBeLessThan(300); // 3.7 standard deviations of 82
  }
});

describe('weighted', () => {
  it('spreads 5, 1, 1 smoothly', () => {
    const weighted = [candidate('a', { weight: 5 }), candidate('b'), candidate('c')];
    expect(order('weighted', weighted, 14)).toBe('aabacaaaabacaa');
  });

  it('is round robin for equal weights', () => {
    expect(order('weighted', abc, 6)).toBe('abcabc');
  });
});

describe('least loaded', () => {
  const pickOf = (a: Partial<Candidate>, b: Partial<Candidate>) =>
    order('leastLoaded', [candidate('a', a), candidate('b', b)], 1);

  it.each([
    { it: 'the faster one', a: { loadLatencyUs: 2000 }, b: { loadLatencyUs: 1000 }, picked: 'b' },
    {
      it: 'the emptier one',
      a: { loadLatencyUs: 1000, inflight: 2 },
      b: { loadLatencyUs: 1000, inflight: 1 },
      picked: 'b',
    },
    {
      it: 'a slow empty one before a fast full one',
      a: { loadLatencyUs: 1000, inflight: 9 },
      b: { loadLatencyUs: 9000 },
      picked: 'b',
    },
    {
      it: 'by weight',
      a: { loadLatencyUs: 1000, weight: 1 },
      b: { loadLatencyUs: 1500, weight: 2 },
      picked: 'b',
    },
    {
      it: 'a new one as if it were as fast as the other',
      a: { loadLatencyUs: 1000, inflight: 1 },
      b: {},
      picked: 'b',
    },
    { it: 'a new one among equals', a: { loadLatencyUs: 1000 }, b: {}, picked: 'b' },
    {
      it: 'the first of two equals',
      a: { loadLatencyUs: 1000 },
      b: { loadLatencyUs: 1000 },
      picked: 'a',
    },
  ])('prefers $it', ({ a, b, picked }) => {
    expect(pickOf(a, b)).toBe(picked);
  });

  it('compares two different ones, whatever the dice say', () => {
    const busy = [candidate('a', { inflight: 5 }), candidate('b'), candidate('c', { inflight: 5 })];
    const picked = order('leastLoaded', busy, 3000, seededRandom(3));
    // b wins whenever it is one of the two: 2 of 3 pairs
    expect(Math.abs(picked.split('b').length - 1 - 2000)).toBeLessThan(100);
  });

  it('takes the only one', () => {
    expect(order('leastLoaded', [candidate('a')], 2)).toBe('aa');
  });
});

it("takes a user's own", () => {
  const last = { pick: (all: readonly Candidate[]) => all.at(-1) as Candidate };
  expect(order(last, abc, 2)).toBe('cc');
});

describe('the latency to balance by', () => {
  it('jumps up at once and comes down slowly, also while idle', () => {
    const latency = new LoadLatency();
    expect(latency.read(1_000_000)).toBe(0);
    latency.answered(1000, 1_000_000);
    latency.answered(5000, 1_000_000);
    expect(latency.read(1_000_000)).toBe(5000);
    expect(latency.read(11_000_000)).toBeCloseTo(5000 / Math.E, 6);
    latency.answered(1000, 1_000_000);
    expect(latency.read(1_000_000)).toBe(5000); // no time has passed: nothing is forgotten
  });

  it('takes a failure for the longest it could have been, then doubles, up to 30 s', () => {
    const latency = new LoadLatency();
    latency.failed(200, 500_000, 0);
    expect(latency.read(0)).toBe(500_000);
    latency.failed(200, 500_000, 0);
    expect(latency.read(0)).toBe(1_000_000);
    for (let i = 0; i < 10; i++) latency.failed(200, 500_000, 0);
    expect(latency.read(0)).toBe(30_000_000);
  });
});
