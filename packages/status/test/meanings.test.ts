import {
  createCircuitBreaker,
  createGuard,
  createRateLimiter,
  type FlagSnapshot,
  type MaxConcurrency,
} from '@elimit/core';
import { TestRateStore } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { meaningOf } from '../src/meanings.js';

const registry = false;
const guarded = (limit: MaxConcurrency) => () => createGuard({ limit, registry }).flags();
const parts: Record<string, () => readonly FlagSnapshot[]> = {
  'a fixed limit': guarded(5),
  unlimited: guarded('unlimited'),
  auto: guarded('auto'),
  'auto, strict': guarded({ type: 'auto', strict: true }),
  'auto, as documented': guarded({ type: 'auto', strict: true, law: 'documented' }),
  timeout: guarded('timeout'),
  'timeout, strict': guarded({ type: 'timeout', strict: true }),
  gradient: guarded('gradient'),
  'a breaker': () => createCircuitBreaker({ registry }).flags(),
  'a strict breaker': () => createCircuitBreaker({ strict: true, registry }).flags(),
  'a rate limiter': () => createRateLimiter({ rate: 10, registry }).flags(),
  'a shared rate limiter': () =>
    createRateLimiter({
      rate: 10,
      name: 'shared',
      store: new TestRateStore(),
      front: { rate: 20, burst: 20 },
      registry,
    }).flags(),
};

it.each(Object.keys(parts))('knows what each option of %s is for', (part) => {
  const flags = parts[part]?.() ?? [];
  expect(flags.length).toBeGreaterThan(1);
  expect(flags.filter((flag) => meaningOf(flag) === '').map(({ name }) => name)).toEqual([]);
});

it('leaves parts of others their own words', () => {
  const flag = { name: 'alpha', value: 1, default: 1, live: true };
  expect(meaningOf({ ...flag, meaning: 'how bold it is' })).toBe('how bold it is');
  expect(meaningOf({ ...flag, name: 'toString' })).toBe('');
});
