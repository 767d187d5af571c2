import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemoryStore } from '../../src/rate/memory-store.js';
import { TokenBucketLaw } from '../../src/rate/token-bucket.js';

function storeOf(rate: number, burst: number, maxKeys: number): MemoryStore {
  return new MemoryStore(new TokenBucketLaw(rate, burst), maxKeys, 42);
}

const take = (store: MemoryStore, key: string, n: number, nowUs: number): number =>
  store.takeAt(store.find(key, nowUs), n, nowUs);

describe('the memory store', () => {
  it('counts each key for itself, odd names included', () => {
    const store = storeOf(1, 1, 100);
    for (const key of ['a', '__proto__', 'constructor', 'a\0b', '', 'ä']) {
      expect([take(store, key, 1, 0), take(store, key, 1, 0)]).toEqual([0, 1_000_000]);
    }
    expect(store.size).toBe(6);
  });

  it('lets all of it go once nobody owes anything', () => {
    const store = storeOf(10, 10, 200_000);
    for (let i = 0; i < 200_000; i++) take(store, `k${i}`, 5, 0);
    expect(store.size).toBe(200_000);
    store.prune(2_000_000);
    expect(store.size).toBe(200_000);
    store.prune(2_000_001); // a burst of ten at 10/s, a cut upwards, and a second
    expect(store.size).toBe(0);
  });

  it('drops full buckets as newcomers come by, so that only the active ones are held', () => {
    const store = storeOf(10, 10, 100_000);
    // 1000 new keys a second; each is full again after 100 ms, and dropped a second later
    for (let i = 0; i < 20_000; i++) take(store, `k${i}`, 1, i * 1000);
    expect(store.size).toBeLessThan(2000);
  });

  it('never unblocks a blocked key by eviction', () => {
    const store = storeOf(1, 5, 1000);
    take(store, 'blocked', 5, 0);
    for (let i = 0; i < 50_000; i++) take(store, `flood ${i}`, 1, 1000);
    expect(store.size).toBe(1000);
    // 10 ms after it was blocked: still 990 ms to go for one token
    expect(take(store, 'blocked', 1, 10_000)).toBe(990_000);
    expect(take(store, 'blocked', 1, 1_000_000)).toBe(0);
  });

  it('has a flood cost newcomers nothing', () => {
    const store = storeOf(1, 5, 1000);
    for (let i = 0; i < 50_000; i++) take(store, `flood ${i}`, 5, 0);
    for (let i = 0; i < 500; i++) {
      expect(store.tokensAt(store.find(`new ${i}`, 0), 0)).toBe(5);
    }
  });

  it('takes a given-up key up where it was, with its half-spent burst', () => {
    const store = storeOf(1, 5, 10);
    for (let i = 0; i < 25; i++) take(store, `k${i}`, 3, 0);
    expect(store.size).toBe(10);
    for (let i = 0; i < 25; i++)
      expect(store.tokensAt(store.find(`k${i}`, 0), 0)).toBeCloseTo(2, 9);
  });

  it('keeps debts over a change of rate and burst, in buckets and in the shadow', () => {
    const store = storeOf(1, 4, 8);
    take(store, 'blocked', 4, 0);
    for (let i = 0; i < 1000; i++) take(store, `flood ${i}`, 4, 0);
    store.retune(2, 10, 0);
    expect(take(store, 'blocked', 1, 0)).toBe(500_000);
    store.retune(0, 10, 0);
    for (let i = 0; i < 100; i++) take(store, `late ${i}`, 10, 0);
    store.retune(4, 10, 1_000_000);
    expect(take(store, 'blocked', 1, 1_000_000)).toBeGreaterThan(0);
  });

  it('is never more generous than a store without bounds, while the shadow has room', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(
          fc.record({
            key: fc.integer({ min: 0, max: 40 }),
            n: fc.integer({ min: 0, max: 6 }),
            gapUs: fc.integer({ min: 0, max: 400_000 }),
          }),
          { maxLength: 200 },
        ),
        (maxKeys, calls) => {
          // as many keys as fit into memory and one set of its shadow
          const keys = maxKeys + 8;
          const bounded = storeOf(2, 5, maxKeys);
          const model = new Map<number, { tokens: number; atUs: number }>();
          let nowUs = 0;
          let excess = 0;
          let most = 0;
          for (const { key: any, n, gapUs } of calls) {
            const key = any % keys;
            nowUs += gapUs;
            const was = model.get(key) ?? { tokens: 5, atUs: nowUs };
            const tokens = Math.min(5, was.tokens + ((nowUs - was.atUs) * 2) / 1e6);
            const granted = take(bounded, `${key}`, n, nowUs) === 0;
            if (granted) excess = Math.max(excess, n - tokens);
            most = Math.max(most, bounded.size);
            model.set(key, { tokens: granted ? tokens - n : tokens, atUs: nowUs });
          }
          expect(excess).toBeLessThan(1e-6);
          expect(most).toBeLessThanOrEqual(maxKeys);
        },
      ),
      { numRuns: 300 },
    );
  });
});
