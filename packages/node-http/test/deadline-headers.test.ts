import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DEADLINE_HEADERS, timeoutOf } from '../src/index.js';

const timeout = (headers: Record<string, string>): number | undefined => timeoutOf({ headers });

const GARBAGE = [
  '-1',
  '+5',
  '1e99',
  '1e3',
  '0x10',
  '1.5',
  'NaN',
  'Infinity',
  '1_000',
  '１２',
].concat(['', ' ', ',', 'abc', '9999999999999', '5 0', '250ms', '9'.repeat(400)]);

describe('timeoutOf', () => {
  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'x-request-timeout-ms': '250' }, 250],
    [{ 'x-request-timeout-ms': ' 250 ' }, 250],
    [{ 'x-request-timeout-ms': '0' }, 0],
    [{ 'x-envoy-expected-rq-timeout-ms': '15' }, 15],
    [{ 'grpc-timeout': '2H' }, 7_200_000],
    [{ 'grpc-timeout': '3M' }, 180_000],
    [{ 'grpc-timeout': '4S' }, 4_000],
    [{ 'grpc-timeout': '100m' }, 100],
    [{ 'grpc-timeout': '1500u' }, 1.5],
    [{ 'grpc-timeout': '0n' }, 0],
    [{ 'grpc-timeout': '99999999H' }, 359_999_996_400_000],
  ])('%j is %p', (headers, expected) => {
    expect(timeout(headers)).toBe(expected);
  });

  it('takes the smallest of all headers, and of one sent twice', () => {
    expect(
      timeout({
        'grpc-timeout': '1S',
        'x-envoy-expected-rq-timeout-ms': '300',
        'x-request-timeout-ms': '400, 200',
      }),
    ).toBe(200);
  });

  it.each(GARBAGE)('ignores %j', (text) => {
    expect(timeout({ 'x-request-timeout-ms': text })).toBeUndefined();
    expect(timeout({ 'x-request-timeout-ms': text, 'grpc-timeout': '7m' })).toBe(7);
  });

  it.each(['100', '100x', '123456789S', '-5m', '1.5S', 'm', '1e2m', ''])(
    'ignores a grpc-timeout of %j',
    (text) => {
      expect(timeout({ 'grpc-timeout': text })).toBeUndefined();
    },
  );

  it('reads the good part of a list with garbage in it', () => {
    expect(timeout({ 'x-request-timeout-ms': 'abc, 90, -3' })).toBe(90);
  });

  it('reads other headers when told their names', () => {
    const headers = { 'x-budget': '80', 'x-request-timeout-ms': '10' };
    expect(timeoutOf({ headers }, ['x-budget'])).toBe(80);
    expect(timeoutOf({ headers }, [])).toBeUndefined();
  });

  it('is undefined or a number from 0 that can be counted in microseconds, whatever the header', () => {
    fc.assert(
      fc.property(fc.constantFrom(...DEADLINE_HEADERS), fc.string(), (name, text) => {
        const timeoutMs = timeout({ [name]: text });
        if (timeoutMs === undefined) return;
        expect(timeoutMs).toBeGreaterThanOrEqual(0);
        expect(Number.isSafeInteger(Math.ceil(timeoutMs * 1_000))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
