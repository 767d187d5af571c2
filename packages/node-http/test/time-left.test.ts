import type { IncomingMessage } from 'node:http';
import { timeLeftOf } from '@elimit/node-http';
import { settle } from '@elimit/testkit';
import { expect, it } from '@jest/globals';

const requestWith = (headers: Record<string, string>) =>
  ({ headers }) as unknown as IncomingMessage;

it('is what the headers gave, less what has passed since the request arrived', async () => {
  const req = requestWith({ 'x-request-timeout-ms': '300', 'grpc-timeout': '2S' });
  const first = timeLeftOf(req) as number;
  expect(first).toBeLessThanOrEqual(300);
  const until = performance.now() + 5;
  while (performance.now() < until) await settle();
  expect(timeLeftOf(req)).toBeLessThanOrEqual(first - 5);
});

it('goes below 0 when the time has passed, and is undefined where there is none', () => {
  expect(timeLeftOf(requestWith({ 'x-request-timeout-ms': '0' }))).toBeLessThanOrEqual(0);
  expect(timeLeftOf(requestWith({}))).toBeUndefined();
  expect(timeLeftOf(requestWith({ 'x-request-timeout-ms': 'soon' }))).toBeUndefined();
});

it('reads headers of other names', () => {
  const req = requestWith({ 'x-left': '1000' });
  expect(timeLeftOf(req)).toBeUndefined();
  expect(timeLeftOf(req, ['x-left'])).toBeGreaterThan(0);
});
