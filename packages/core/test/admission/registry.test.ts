import { createGuard, createRegistry, processRegistry } from '@elimit/core';
import { liveHeap, settle } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

describe('a registry', () => {
  it('gives its members in the order in which they came, each once', () => {
    const registry = createRegistry();
    const [a, b] = [createGuard({ registry, name: 'a' }), createGuard({ registry, name: 'b' })];
    registry.add(a);
    expect(registry.sources()).toEqual([a, b]);
    registry.remove(a);
    registry.remove(a);
    expect(registry.sources()).toEqual([b]);
    registry.add(a);
    expect(registry.sources()).toEqual([b, a]);
  });

  it('takes two members of one name', () => {
    const registry = createRegistry();
    const guards = [1, 2].map(() => createGuard({ registry, name: 'same' }));
    expect(registry.sources()).toEqual(guards);
  });

  it('is one per process, for two copies of the package too', () => {
    expect(processRegistry()).toBe(processRegistry());
    const scope = globalThis as unknown as Record<symbol, unknown>;
    expect(scope[Symbol.for('@elimit/core/registry')]).toBe(processRegistry());
  });

  it('keeps nothing alive: 100 000 guards made and dropped leave nothing', async () => {
    const registry = createRegistry();
    const kept = createGuard({ registry, name: 'kept' });
    const churn = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const entry = createGuard({ registry, limit: 10 }).tryAcquire();
        if (entry.admitted && i % 2 === 0) entry.release('ignored'); // the other half are dropped while in flight
        if (i % 5_000 === 0) await settle();
      }
    };
    await churn(10_000); // tables grow to their size, code gets hot
    const before = await liveHeap();
    await churn(100_000);
    const grownBytes = (await liveHeap()) - before;
    expect(registry.sources()).toEqual([kept]);
    expect(grownBytes).toBeLessThan(1_000_000); // 10 bytes per guard would be too much
  }, 60_000);
});
