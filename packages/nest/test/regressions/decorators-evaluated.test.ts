import { describe, expect, it } from '@jest/globals';
import { Breaker, SkipLimit, SkipRateLimit } from '../../src/index.js';

describe('decorators that need no application refuse when their class is evaluated', () => {
  it('@Breaker, with the name of its method', () => {
    const joined: unknown[] = [];
    const cluster = { join: (node: unknown) => joined.push(node) };
    expect(() => {
      class Catalog {
        @Breaker({ timeoutMs: -1, cluster: cluster as never }) load() {}
      }
      return Catalog;
    }).toThrow('@Breaker on Catalog.load: breaker.timeoutMs must be a number above 0');
    class Joins {
      @Breaker({ cluster: cluster as never }) load() {}
    }
    expect([Joins.name, joined]).toEqual(['Joins', []]);
  });

  it('@SkipLimit and @SkipRateLimit', () => {
    expect(() => SkipLimit('no' as never)).toThrow('@SkipLimit must be true or false, got "no"');
    expect(() => SkipRateLimit(0 as never)).toThrow('@SkipRateLimit must be true or false, got 0');
  });
});
