import { classifyByDefault, retryAfterMsOf, type Verdict, verdictOfError } from '@elimit/client';
import { BreakerOpenError, TimeoutError } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import { ConnectTimeoutError } from '../src/errors.js';

const coded = (code: string, extra: object = {}) =>
  Object.assign(new Error(code), { code, ...extra });
const wrapped = (cause: unknown) => new TypeError('fetch failed', { cause });
const marked = { 'x-bd-error-code': '2004', 'retry-after': '2' };

describe('what was thrown', () => {
  it.each<{ it: string; error: unknown; verdict: Verdict }>([
    {
      it: 'a file to send that has changed, wrapped by fetch',
      error: wrapped(new DOMException('changed', 'NotReadableError')),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'a refused connection',
      error: coded('ECONNREFUSED'),
      verdict: { outcome: 'failure', connect: 'refused', retriable: true },
    },
    {
      it: 'no route to the network',
      error: coded('ENETUNREACH'),
      verdict: { outcome: 'failure', connect: 'unreachable', retriable: true },
    },
    {
      it: 'no route to the host',
      error: coded('EHOSTUNREACH'),
      verdict: { outcome: 'failure', connect: 'unreachable', retriable: true },
    },
    {
      it: 'EINVAL while connecting',
      error: coded('EINVAL', { syscall: 'connect' }),
      verdict: { outcome: 'failure', connect: 'unreachable', retriable: true },
    },
    {
      it: 'EINVAL of anything else',
      error: coded('EINVAL', { syscall: 'open' }),
      verdict: { outcome: 'failure', retriable: false },
    },
    {
      it: 'our connect timeout',
      error: new ConnectTimeoutError('a', 1),
      verdict: { outcome: 'failure', connect: 'timeout', retriable: true },
    },
    {
      it: "undici's connect timeout, wrapped by fetch",
      error: wrapped(coded('UND_ERR_CONNECT_TIMEOUT')),
      verdict: { outcome: 'failure', connect: 'timeout', retriable: true },
    },
    {
      it: "the kernel's connect timeout",
      error: coded('ETIMEDOUT', { syscall: 'connect' }),
      verdict: { outcome: 'failure', connect: 'timeout', retriable: true },
    },
    {
      it: 'a read that timed out',
      error: coded('ETIMEDOUT', { syscall: 'read' }),
      verdict: { outcome: 'failure', retriable: true },
    },
    {
      it: 'two addresses, both refused',
      error: new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')]),
      verdict: { outcome: 'failure', connect: 'refused', retriable: true },
    },
    {
      it: 'two addresses, one slow',
      error: new AggregateError([
        coded('ECONNREFUSED'),
        coded('ETIMEDOUT', { syscall: 'connect' }),
      ]),
      verdict: { outcome: 'failure', connect: 'timeout', retriable: true },
    },
    {
      it: 'two errors that are not about connecting',
      error: new AggregateError([coded('EBADF'), 'text']),
      verdict: { outcome: 'failure', retriable: false },
    },
    {
      it: 'a name that is not known',
      error: coded('ENOTFOUND'),
      verdict: { outcome: 'failure', retriable: true, safeToResend: true },
    },
    { it: 'a reset', error: coded('ECONNRESET'), verdict: { outcome: 'failure', retriable: true } },
    {
      it: 'a reset of a connection that had idled',
      error: coded('ECONNRESET', { request: { reusedSocket: true } }),
      verdict: { outcome: 'ignored', retriable: true },
    },
    {
      it: 'the same behind follow-redirects',
      error: coded('ECONNRESET', { request: { _currentRequest: { reusedSocket: true } } }),
      verdict: { outcome: 'ignored', retriable: true },
    },
    {
      it: 'a timeout',
      error: new TimeoutError('it', 5),
      verdict: { outcome: 'failure', retriable: true },
    },
    {
      it: 'AbortSignal.timeout',
      error: new DOMException('late', 'TimeoutError'),
      verdict: { outcome: 'failure', retriable: true },
    },
    {
      it: 'a cancel',
      error: new DOMException('gone', 'AbortError'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: "axios's cancel",
      error: coded('ERR_CANCELED'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'a breaker further in',
      error: new BreakerOpenError('b', 1),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'an AxiosError for a 500',
      error: coded('ERR_BAD_RESPONSE', { response: { status: 500, headers: {} } }),
      verdict: { outcome: 'failure', status: 500 },
    },
    {
      it: 'an AxiosError for a 404',
      error: coded('ERR_BAD_REQUEST', { response: { status: 404, headers: {} } }),
      verdict: { outcome: 'success', status: 404 },
    },
    {
      it: 'an AxiosError for a refusal',
      error: coded('ERR_BAD_RESPONSE', { response: { status: 503, headers: marked } }),
      verdict: { outcome: 'ignored', refusal: true, status: 503, retryAfterMs: 1000 },
    },
    {
      it: 'a header that cannot be sent, by Node',
      error: Object.assign(new TypeError('Invalid character'), { code: 'ERR_INVALID_CHAR' }),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'the same by axios, whose error is around it',
      error: coded('ERR_INVALID_HTTP_TOKEN', { cause: new TypeError('Method') }),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'the same by undici',
      error: coded('UND_ERR_INVALID_ARG'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'axios’s bound on the request',
      error: coded('ERR_BAD_REQUEST'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'axios’s bound on the answer',
      error: coded('ERR_BAD_RESPONSE'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'a TypeError without a cause: a slip',
      error: new TypeError('undefined is not a function'),
      verdict: { outcome: 'ignored', retriable: false },
    },
    {
      it: 'a TypeError with one: what fetch makes of a failure',
      error: wrapped(new Error('redirect count exceeded')),
      verdict: { outcome: 'failure', retriable: false },
    },
    {
      it: 'an unknown error',
      error: new Error('bug'),
      verdict: { outcome: 'failure', retriable: false },
    },
    { it: 'undefined', error: undefined, verdict: { outcome: 'failure', retriable: false } },
    { it: 'a string', error: 'no', verdict: { outcome: 'failure', retriable: false } },
    {
      it: 'a frozen object',
      error: Object.freeze({}),
      verdict: { outcome: 'failure', retriable: false },
    },
  ])('$it', ({ error, verdict }) => {
    expect(verdictOfError(error)).toEqual(verdict);
  });

  it('ends on errors that cause themselves', () => {
    const error = coded('ECIRCLE') as Error & { cause?: unknown };
    error.cause = error;
    expect(verdictOfError(error)).toEqual({ outcome: 'failure', retriable: false });
  });
});

describe('what was answered', () => {
  it.each<{ it: string; value: unknown; verdict: Verdict }>([
    { it: 'nothing', value: undefined, verdict: { outcome: 'success' } },
    { it: 'a value without status', value: { status: 'shipped' }, verdict: { outcome: 'success' } },
    { it: 'a status that is none', value: { status: 7 }, verdict: { outcome: 'success' } },
    { it: '200 by fetch', value: new Response('x'), verdict: { outcome: 'success', status: 200 } },
    { it: '404', value: { status: 404 }, verdict: { outcome: 'success', status: 404 } },
    {
      it: '500 by node:http',
      value: { statusCode: 500, headers: {} },
      verdict: { outcome: 'failure', status: 500 },
    },
    {
      it: '503 with Retry-After',
      value: new Response('', { status: 503, headers: { 'retry-after': '3' } }),
      verdict: { outcome: 'failure', status: 503, retryAfterMs: 3000 },
    },
    {
      it: 'Retry-After on a 502 is not believed',
      value: { status: 502, headers: { 'retry-after': '3' } },
      verdict: { outcome: 'failure', status: 502 },
    },
    {
      it: 'a refusal by fetch',
      value: new Response('', { status: 503, headers: marked }),
      verdict: { outcome: 'ignored', refusal: true, status: 503, retryAfterMs: 1000 },
    },
    {
      it: 'a refusal with another mark',
      value: { status: 503, headers: { 'x-bd-error-code': '112' } },
      verdict: { outcome: 'failure', status: 503 },
    },
    {
      it: 'a refusal that asks for the shortest time there is on the wire: rounded up from 100 ms, perhaps',
      value: { status: 503, headers: { ...marked, 'retry-after': '1' } },
      verdict: { outcome: 'ignored', refusal: true, status: 503, retryAfterMs: 100 },
    },
    {
      it: 'a quota: never moved, marked or not',
      value: { status: 429, headers: marked },
      verdict: { outcome: 'ignored', status: 429, retriable: false },
    },
  ])('$it', ({ value, verdict }) => {
    expect(classifyByDefault({ ok: true, value })).toEqual(verdict);
  });
});

it.each<{ value: string | null | undefined; ms: number | undefined }>([
  { value: '0', ms: 0 },
  { value: ' 12 ', ms: 12_000 },
  { value: '86400', ms: 86_400_000 },
  { value: 'Thu, 01 Jan 1970 00:00:10 GMT', ms: 9000 },
  { value: 'Thu, 01 Jan 1970 00:00:00 GMT', ms: 0 },
  { value: 'abc', ms: undefined },
  { value: '-1', ms: undefined },
  { value: '1.5', ms: undefined },
  { value: '1e12', ms: undefined },
  { value: '', ms: undefined },
  { value: null, ms: undefined },
  { value: undefined, ms: undefined },
  { value: 'Nonday, 99 Foo 1970 00:00:00 GMT', ms: undefined },
])('Retry-After: $value is $ms', ({ value, ms }) => {
  expect(retryAfterMsOf(value, 1000)).toBe(ms);
});
