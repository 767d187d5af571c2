import { fileURLToPath } from 'node:url';
import { CircuitBreaker, createRegistry, StrictBreaker } from '@elimit/core';
import { runVectorFiles, VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';

const folder = (name: string): string =>
  fileURLToPath(new URL(`../vectors/${name}`, import.meta.url));

it.each([
  { kind: 'breaker', files: 32 },
  { kind: 'recover', files: 7 },
])('reproduces all $files files of vectors/$kind exactly', ({ kind, files }) => {
  expect(runVectorFiles([folder(kind)])).toEqual({ passed: files, failed: 0, lines: [] });
});

it("opens, closes by time and half-opens behind the public form, with brpc's numbers", async () => {
  const clock = new VirtualClock(100_000_000); // long after 0: the first isolation is the shortest
  const breaker = new CircuitBreaker({
    strict: true,
    shortWindowSize: 50,
    longWindowSize: 100,
    halfOpenWindowSize: 2,
    clock,
    timers: clock,
    registry: createRegistry(),
  });
  const fail = () => Promise.reject(new Error('down'));
  // both windows allow 5 failures while they fill; the 6th breaks
  for (let i = 0; i < 6; i++) await expect(breaker.execute(fail)).rejects.toThrow('down');
  await expect(breaker.execute(fail)).rejects.toMatchObject({
    code: 'ERR_BREAKER_OPEN',
    retryAfterMs: 100,
  });
  clock.advanceMs(100);
  expect(breaker.state).toBe('halfOpen');
  for (let i = 0; i < 2; i++) await breaker.execute(() => 1);
  expect(breaker.state).toBe('closed');
});

it('fixes window sizes and shares at construction, as brpc does', () => {
  const breaker = new StrictBreaker();
  expect(() => breaker.configure({ longWindowSize: 10 })).toThrow(
    'breaker.longWindowSize is fixed at construction (3000), got 10',
  );
  breaker.configure({ longWindowSize: 3000, maxIsolationMs: 50_000 });
  expect(breaker.flags().find(({ name }) => name === 'maxIsolationMs')?.value).toBe(50_000);
});

it('stays open by hand until reset', () => {
  const breaker = new StrictBreaker();
  breaker.forceOpen(1_000_000);
  expect(breaker.state(1e12)).toBe('open');
  breaker.halfOpen(1e12, 'healthCheck');
  expect(breaker.state(1e12)).toBe('open');
  breaker.reset(1e12);
  expect(breaker.state(1e12)).toBe('closed');
});
