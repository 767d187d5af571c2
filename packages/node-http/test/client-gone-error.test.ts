import { describe, expect, it } from '@jest/globals';
import { ClientGoneError } from '../src/index.js';

describe('ClientGoneError', () => {
  it('is told by its brand, so that one of another copy of the package is known', () => {
    const brand = Symbol.for('@elimit/node-http/ClientGoneError');
    expect(ClientGoneError.is(new ClientGoneError())).toBe(true);
    expect(ClientGoneError.is({ [brand]: true })).toBe(true);
    expect(ClientGoneError.is(new Error('the client has hung up'))).toBe(false);
    expect(ClientGoneError.is(undefined)).toBe(false);
  });

  it('reads as an abort to whoever knows only those', () => {
    expect(new ClientGoneError()).toMatchObject({ name: 'AbortError', code: 'ERR_CLIENT_GONE' });
  });
});
