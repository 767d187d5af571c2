import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  CircuitBreaker,
  type ClusterNode,
  createBreakerCluster,
  ErrorCostBreaker,
  type ErrorCostOptions,
  NO_TOKEN,
  StrictBreaker,
  wellRatio,
} from '@elimit/core';
import { seededRandom, settle } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

const MS = 1000;
const COMMON_US = 1000 * MS;

/** Nodes with a breaker each, and one clock for all. */
class Service {
  nowUs = 1_000_000;
  readonly opened: string[] = [];
  readonly nodes: ErrorCostBreaker[];

  constructor(count: number, options: ErrorCostOptions = {}) {
    const cluster = createBreakerCluster();
    this.nodes = Array.from(
      { length: count },
      (_, i) =>
        new ErrorCostBreaker(
          { isolationJitterRatio: 0, ...options },
          {
            cluster,
            onChange: ({ state, cause }) => state === 'open' && this.opened.push(`${i} ${cause}`),
          },
        ),
    );
  }

  passMs(ms: number): void {
    this.nowUs += ms * MS;
  }

  /** One call to a node; false if its breaker refused it. */
  call(node: number, outcome: 'success' | 'failure'): boolean {
    const breaker = this.nodes[node] as ErrorCostBreaker;
    const token = breaker.tryCall(this.nowUs);
    if (token === NO_TOKEN) return false;
    breaker.record(outcome, 10 * MS, this.nowUs, token);
    return true;
  }

  calls(n: number, node: number, outcome: 'success' | 'failure'): void {
    for (let i = 0; i < n; i++) this.call(node, outcome);
  }

  /** Each of these nodes is called once, `n` times over, `everyMs` apart. */
  rounds(n: number, nodes: readonly number[], outcome: 'success' | 'failure', everyMs = 1): void {
    for (let i = 0; i < n; i++) {
      for (const node of nodes) this.call(node, outcome);
      this.passMs(everyMs);
    }
  }

  isOpen(node: number): boolean {
    return this.nodes[node]?.state(this.nowUs) === 'open';
  }

  /** Calls a node that fails until it is out; how many calls that took. */
  failuresUntilOpen(node: number, most = 200): number {
    for (let i = 1; i <= most; i++) {
      this.call(node, 'failure');
      if (this.isOpen(node)) return i;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Waits for a node that is out, and has it back with its ramp done. */
  bringBack(node: number): void {
    this.passMs(4000);
    this.calls(3, node, 'success');
    this.passMs(1000);
    this.call(node, 'success');
  }
}

const ALL = [0, 1, 2, 3, 4];

describe('what the fellows show', () => {
  const showing = (forUs: number): ClusterNode => ({ failingForUs: () => forUs });
  const well = Number.NaN;
  const out = Number.POSITIVE_INFINITY;
  it.each<{ it: string; fellows: number[]; ratio: number }>([
    { it: 'all well', fellows: [well, well, well, well], ratio: 1 },
    { it: 'one of four fails', fellows: [well, well, 5, well], ratio: 0.75 },
    { it: 'all fail, one since just now', fellows: [0, 5, 5, COMMON_US - 1], ratio: 0 },
    { it: 'a fault that is old is its own', fellows: [COMMON_US, 5], ratio: 0.5 },
    { it: 'who is out shows nothing', fellows: [out, out, 5, well], ratio: 0.5 },
    { it: 'all are out', fellows: [out, out], ratio: Number.NaN },
    { it: 'there are none', fellows: [], ratio: Number.NaN },
  ])('$it: $ratio', ({ fellows, ratio }) => {
    const self = showing(3);
    const nodes = [self, ...fellows.map(showing)];
    expect(wellRatio(nodes, self, 0, COMMON_US)).toBe(ratio);
  });

  it('is from the first failure to the third good call in a row, and nothing while it takes no ordinary calls', () => {
    const service = new Service(1);
    const [node] = service.nodes as [ErrorCostBreaker];
    const shown = () => node.failingForUs(service.nowUs) / MS;
    expect(shown()).toBeNaN();
    service.call(0, 'failure');
    service.passMs(7);
    service.calls(2, 0, 'success');
    service.call(0, 'failure');
    expect(shown()).toBe(7);
    service.calls(2, 0, 'success');
    expect(shown()).toBe(7);
    service.call(0, 'success');
    expect(shown()).toBeNaN();
    service.failuresUntilOpen(0);
    expect(shown()).toBe(Number.POSITIVE_INFINITY);
    service.passMs(100);
    service.call(0, 'success'); // half-open
    expect(shown()).toBe(Number.POSITIVE_INFINITY);
  });

  it('is nothing, either way, from the strict grade', () => {
    const strict = new StrictBreaker();
    strict.record('failure', 1000, 5_000_000);
    expect(strict.failingForUs()).toBeNaN();
  });

  it('is forgotten with the breaker: a cluster holds its nodes weakly', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const cluster = createBreakerCluster();
    const fellows = cluster.join({ failingForUs: () => Number.NaN });
    const join = (): void => void cluster.join({ failingForUs: () => 0 });
    join();
    expect(fellows(0, COMMON_US)).toBe(0);
    await settle(); // a WeakRef keeps its target until the end of the turn that looked
    gc();
    expect(fellows(0, COMMON_US)).toBeNaN();
  });
});

describe('a fault of all nodes', () => {
  it('isolates nobody while it is younger than commonFaultMs; five more failures after that do', () => {
    const service = new Service(5);
    service.rounds(1000, ALL, 'failure');
    expect(service.opened).toEqual([]);
    // the first to fail had nobody to excuse it: a little is left of that
    service.rounds(4, ALL, 'failure');
    expect(service.opened).toEqual(['0 errorCost', '1 errorCost', '2 errorCost', '3 errorCost']);
    service.rounds(1, ALL, 'failure');
    expect(service.opened.at(-1)).toBe('4 errorCost');
  });

  it('leaves nothing behind: the nodes are as before once each has had three good calls', () => {
    const service = new Service(5);
    service.rounds(300, ALL, 'failure');
    service.rounds(8, ALL, 'success');
    expect(service.failuresUntilOpen(2)).toBe(5);
    expect(service.opened).toEqual(['2 errorCost']);
  });

  it('is none for a node alone, nor with commonFaultMs 0', () => {
    const alone = new Service(1);
    expect(alone.failuresUntilOpen(0)).toBe(5);
    const unforgiving = new Service(5, { commonFaultMs: 0 });
    unforgiving.passMs(10);
    unforgiving.rounds(5, ALL, 'failure');
    expect(unforgiving.opened).toHaveLength(5);
  });

  it('is shorter than commonFaultMs, at any rate and for any number of nodes: nobody is isolated', () => {
    const property = fc.property(
      fc.integer({ min: 2, max: 12 }), // nodes
      fc.integer({ min: 1, max: 999 }),
      fc.integer({ min: 5, max: 100 }), // between two calls of one node
      fc.integer({ min: 0, max: 20 }),
      fc.constantFrom(1, 0.9),
      fc.integer(),
      (count, blipMs, everyMs, before, share, seed) => {
        const service = new Service(count);
        const nodes = Array.from({ length: count }, (_, node) => node);
        const random = seededRandom(seed);
        const goodRuns = nodes.map(() => 2);
        service.rounds(before, nodes, 'success', everyMs);
        for (const untilUs = service.nowUs + blipMs * MS; service.nowUs < untilUs; ) {
          for (const node of nodes) {
            // a node that begins with good calls, or has three in a row, is well: then the fault is not one of all
            const isFailure = random() < share || (goodRuns[node] as number) >= 2;
            goodRuns[node] = isFailure ? 0 : (goodRuns[node] as number) + 1;
            service.call(node, isFailure ? 'failure' : 'success');
          }
          service.passMs(everyMs);
        }
        service.rounds(3, nodes, 'success', everyMs);
        expect(service.opened).toEqual([]);
      },
    );
    fc.assert(property, { numRuns: 300 });
  });
});

describe('a fault of some nodes', () => {
  it.each([
    { failing: 1, failures: 5 }, // 1 each: more than 4.08
    { failing: 2, failures: 5 },
    { failing: 3, failures: 5 }, // two of its four fellows are well: enough
    { failing: 4, failures: 8 }, // one of four: 0.5 each, after a first 1
    { failing: 5, failures: Number.POSITIVE_INFINITY },
  ])('$failing of five fail: isolated after $failures failures', ({ failing, failures }) => {
    const service = new Service(5);
    const bad = ALL.slice(0, failing);
    service.rounds(3, ALL, 'success');
    let last = Number.POSITIVE_INFINITY;
    for (let round = 1; round <= 100 && last === Number.POSITIVE_INFINITY; round++) {
      service.rounds(1, bad, 'failure');
      service.rounds(1, ALL.slice(failing), 'success');
      if (service.isOpen(0)) last = round;
    }
    expect(last).toBe(failures);
  });

  it('is not excused by a fellow that has failed for long', () => {
    const service = new Service(2, { minCalls: 100 });
    service.call(0, 'failure');
    service.passMs(1000);
    service.call(1, 'failure');
    const [, node] = service.nodes as [ErrorCostBreaker, ErrorCostBreaker];
    expect(node.errorCostRatio).toBeCloseTo(1 / 4.08, 10); // in full
  });
});

describe('a node that came back', () => {
  const returned = (options: ErrorCostOptions = {}, count = 5): Service => {
    const service = new Service(count, options);
    service.rounds(1000, ALL.slice(0, count), 'success'); // so that failures are known to be rare
    expect(service.failuresUntilOpen(0)).toBe(5);
    service.bringBack(0);
    service.calls(100, 0, 'success');
    return service;
  };

  it.each([
    { goodMs: 0, failures: 2 },
    { goodMs: 18_000, failures: 2 },
    { goodMs: 20_000, failures: 3 }, // the second of the ramp counts as well
    { goodMs: 40_000, failures: 4 },
    { goodMs: 60_000, failures: 5 }, // the short window, as ever
    { goodMs: 600_000, failures: 5 },
  ])('after $goodMs ms it is isolated by $failures failures in a row', ({ goodMs, failures }) => {
    const service = returned();
    service.passMs(goodMs);
    service.calls(5, 0, 'success'); // minCalls, whatever was forgotten
    expect(service.failuresUntilOpen(0)).toBe(failures);
    expect(service.opened.at(-1)).toBe(failures < 5 ? '0 relapse' : '0 errorCost');
  });

  it('is not isolated for a single failure, nor for two with a good call between', () => {
    const service = returned();
    for (let i = 0; i < 5; i++) {
      service.call(0, 'failure');
      service.calls(3, 0, 'success');
    }
    expect(service.opened).toEqual(['0 errorCost']);
  });

  it('has its five failures where nobody could take its calls over', () => {
    expect(returned({}, 1).failuresUntilOpen(0)).toBe(5);
    const service = returned();
    for (const node of [1, 2, 3]) service.call(node, 'failure'); // only one of four is well
    expect(service.failuresUntilOpen(0)).toBeGreaterThanOrEqual(5);
  });

  it('needs more failures in a row than chance would give it: a node that fails one call in ten has three', () => {
    const service = new Service(5, { longWindowErrorRatio: 0.5 });
    const usual = (n: number): void => {
      for (let i = 0; i < n; i++) {
        service.rounds(9, ALL, 'success');
        service.call(0, 'failure');
      }
      service.rounds(1, ALL, 'success');
    };
    usual(100);
    service.failuresUntilOpen(0);
    service.bringBack(0);
    usual(2);
    // 20 calls and a few since the return, each failing one time in nine or ten: two in a row are no surprise
    expect(service.failuresUntilOpen(0)).toBe(3);
    expect(service.opened).toEqual(['0 errorCost', '0 relapse']);
  });

  it('is as any other after reset, and never relapses with relapseMs 0', () => {
    const service = returned();
    service.nodes[0]?.reset(service.nowUs);
    expect(service.failuresUntilOpen(0)).toBe(5);
    expect(returned({ relapseMs: 0 }).failuresUntilOpen(0)).toBe(5);
  });
});

describe('CircuitBreaker in a cluster', () => {
  const down = () => Promise.reject(new Error('down'));
  it('isolates one of three that fails, but not three that fail together', async () => {
    const cluster = createBreakerCluster();
    const nodes = ['a', 'b', 'c'].map(
      (name) => new CircuitBreaker({ name, cluster, registry: false, clock: { nowUs: () => 5 } }),
    );
    for (let i = 0; i < 20; i++) {
      for (const node of nodes) await expect(node.execute(down)).rejects.toThrow('down');
    }
    expect(nodes.map(({ state }) => state)).toEqual(['closed', 'closed', 'closed']);
    const [a] = nodes as [CircuitBreaker];
    for (let i = 0; i < 10; i++) {
      for (const node of nodes) await node.execute(() => 1);
    }
    for (let i = 0; i < 5; i++) await expect(a.execute(down)).rejects.toThrow('down');
    expect(nodes.map(({ state }) => state)).toEqual(['open', 'closed', 'closed']);
  });

  it.each<[object, string]>([
    [{ strict: true, cluster: createBreakerCluster() }, 'breaker.cluster belongs to the default'],
    [{ cluster: {} }, 'breaker.cluster.join must be a function'],
    [{ commonFaultMs: -1 }, 'breaker.commonFaultMs must be a number from 0'],
    [{ strict: true, commonFaultMs: 1 }, 'breaker.commonFaultMs belongs to the default grade'],
  ])('%j is refused', (options, message) => {
    expect(() => new CircuitBreaker({ registry: false, ...options })).toThrow(message);
  });
});
