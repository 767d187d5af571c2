import {
  BRPC_CODES,
  BreakerOpenError,
  ClosedError,
  REJECTION_STATUS,
  RejectedError,
  type RejectionReason,
  rejected,
  rejectionBody,
  retryAfterSeconds,
  TimeoutError,
} from '@elimit/core';
import { describe, expect, it } from '@jest/globals';

const REASONS = Object.keys(REJECTION_STATUS) as RejectionReason[];
const rejection = (reason: RejectionReason) =>
  ({ admitted: false, reason, retryAfterMs: 250, name: 'g' }) as const;

describe('a rejection', () => {
  it.each(REASONS)(
    'for %s becomes an error with its status and code, without a stack',
    (reason) => {
      const { stackTraceLimit } = Error;
      const error = rejected(rejection(reason));
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({
        name: 'RejectedError',
        code: 'ERR_REJECTED',
        brpcCode: 2004,
        status: reason === 'rate' ? 429 : 503,
        retryAfterMs: 250,
        rejection: rejection(reason),
        message: `rejected by g: ${reason}`,
      });
      expect(error.status).toBe(REJECTION_STATUS[reason]);
      expect(error.stack).not.toMatch(/\n\s+at /);
      expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    },
  );

  it.each(REASONS)('for %s has a body in wire order', (reason) => {
    const body = rejectionBody(rejection(reason));
    expect(Object.keys(body)).toEqual(['code', 'errno', 'reason', 'message', 'retryAfterMs']);
    expect(body).toMatchObject({ code: 'ELIMIT', errno: 2004, reason, retryAfterMs: 250 });
    expect(body.message).toMatch(/\.$/);
    expect(rejectionBody(rejection(reason), 'busy').message).toBe('busy');
  });

  it.each([
    [0, 1],
    [1, 1],
    [200, 1],
    [1000, 1],
    [1001, 2],
    [9999, 10],
    [Infinity, 86_400],
  ])('says %d ms as %d whole seconds, never too early', (ms, seconds) => {
    expect(retryAfterSeconds(ms)).toBe(seconds);
  });
});

describe('an error', () => {
  const errors = {
    RejectedError: { is: RejectedError.is, error: rejected(rejection('concurrency')) },
    TimeoutError: { is: TimeoutError.is, error: new TimeoutError('f', 20) },
    BreakerOpenError: { is: BreakerOpenError.is, error: new BreakerOpenError('b', 5) },
    ClosedError: { is: ClosedError.is, error: new ClosedError('closed') },
  };

  it.each(Object.entries(errors))('%s knows its own kind alone', (name, { is }) => {
    for (const [other, { error }] of Object.entries(errors)) expect(is(error)).toBe(other === name);
    for (const value of [undefined, null, 0, '', 'x', {}, new Error(name), Symbol.for(name)]) {
      expect(is(value)).toBe(false);
    }
  });

  it.each(Object.entries(errors))(
    '%s is known from a second copy of the package',
    (name, { is, error }) => {
      const brand = Symbol.for(`@elimit/core/${name}`);
      expect(brand in error).toBe(true);
      expect(is({ [brand]: true })).toBe(true);
    },
  );

  it('carries the numbers of brpc', () => {
    expect(BRPC_CODES).toEqual({ ELIMIT: 2004, EHOSTDOWN: 112, EREJECT: 1018 });
    expect(errors.BreakerOpenError.error).toMatchObject({
      brpcCode: 112,
      status: 503,
      breaker: 'b',
      retryAfterMs: 5,
    });
    expect(errors.TimeoutError.error.message).toBe('f took longer than 20 ms');
  });
});
