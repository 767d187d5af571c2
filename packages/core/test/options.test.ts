import {
  booleanOf,
  functionOf,
  integerIn,
  knownKeys,
  located,
  numberIn,
  objectOf,
  oneOf,
  renamed,
  show,
  textOf,
} from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import { having } from '../src/options.js';

const MAX = Number.MAX_SAFE_INTEGER;

describe('a check', () => {
  it.each<{ it: string; check: () => unknown; value: unknown }>([
    { it: 'a whole number', check: () => integerIn('x', 3, 1, 5), value: 3 },
    { it: 'the lower bound', check: () => integerIn('x', 1, 1, 5), value: 1 },
    { it: 'the upper bound', check: () => integerIn('x', 5, 1, 5), value: 5 },
    { it: 'a fraction', check: () => numberIn('x', 0.5, 0, 1), value: 0.5 },
    { it: 'false', check: () => booleanOf('x', false), value: false },
    { it: 'a text', check: () => textOf('x', ' '), value: ' ' },
    { it: 'a choice', check: () => oneOf('x', 'b', ['a', 'b']), value: 'b' },
    { it: 'a function', check: () => functionOf('x', String), value: String },
  ])('hands back $it', ({ check, value }) => {
    expect(check()).toBe(value);
  });

  it.each<{ check: () => unknown; error: ErrorConstructor; message: string }>([
    {
      check: () => integerIn('x', 0, 1, 5),
      error: RangeError,
      message: 'x must be a whole number from 1 to 5, got 0',
    },
    {
      check: () => integerIn('x', 6, 1, 5),
      error: RangeError,
      message: 'x must be a whole number from 1 to 5, got 6',
    },
    {
      check: () => integerIn('x', 1.5, 1, 5),
      error: RangeError,
      message: 'x must be a whole number from 1 to 5, got 1.5',
    },
    {
      check: () => integerIn('x', Number.NaN, 1, MAX),
      error: RangeError,
      message: 'x must be a whole number of at least 1, got NaN',
    },
    {
      check: () => integerIn('x', Infinity, 1, MAX),
      error: RangeError,
      message: 'x must be a whole number of at least 1, got Infinity',
    },
    {
      check: () => integerIn('x', '3', 1, 5),
      error: TypeError,
      message: 'x must be a whole number from 1 to 5, got "3"',
    },
    {
      check: () => integerIn('x', 3n, 1, 5),
      error: TypeError,
      message: 'x must be a whole number from 1 to 5, got 3n',
    },
    {
      check: () => numberIn('x', Number.NaN, 0, 1),
      error: RangeError,
      message: 'x must be a number from 0 to 1, got NaN',
    },
    {
      check: () => numberIn('x', 2, -MAX, 1),
      error: RangeError,
      message: 'x must be a number of at most 1, got 2',
    },
    {
      check: () => numberIn('x', 0, Number.MIN_VALUE, 5),
      error: RangeError,
      message: 'x must be a number above 0 and at most 5, got 0',
    },
    {
      check: () => numberIn('x', -Infinity, -MAX, MAX),
      error: RangeError,
      message: 'x must be a number, got -Infinity',
    },
    {
      check: () => numberIn('x', null, 0, 1),
      error: TypeError,
      message: 'x must be a number from 0 to 1, got null',
    },
    { check: () => booleanOf('x', 0), error: TypeError, message: 'x must be true or false, got 0' },
    {
      check: () => textOf('x', ''),
      error: TypeError,
      message: 'x must be a non-empty string, got ""',
    },
    {
      check: () => oneOf('x', 'c', ['a', 'b']),
      error: RangeError,
      message: 'x must be one of a, b, got "c"',
    },
    {
      check: () => oneOf('x', 1, ['a', 'b']),
      error: TypeError,
      message: 'x must be one of a, b, got 1',
    },
    {
      check: () => functionOf('x', {}),
      error: TypeError,
      message: 'x must be a function, got an object',
    },
    {
      check: () => objectOf('x', null),
      error: TypeError,
      message: 'x must be an object, got null',
    },
    {
      check: () => objectOf('x', [1]),
      error: TypeError,
      message: 'x must be an object, got an array of 1',
    },
    {
      check: () => knownKeys('x', { b: 1 }, { a: 0 }),
      error: TypeError,
      message: 'x.b is not an option; known: a',
    },
    {
      check: () => knownKeys('x', { toString: 1 }, { a: 0 }),
      error: TypeError,
      message: 'x.toString is not an option; known: a',
    },
    {
      check: () => having('x', { a: 1 }, ['a']),
      error: TypeError,
      message: 'x.a must be a function, got 1',
    },
  ])('refuses: $message', ({ check, error, message }) => {
    expect(check).toThrow(error);
    expect(check).toThrow(message);
  });

  it.each([
    ['a'.repeat(100), `"${'a'.repeat(57)}..."`],
    ['a\nb', '"a\\nb"'],
    [Symbol('s'), 'Symbol(s)'],
    [function named() {}, 'function named'],
    [() => {}, 'function (anonymous)'],
    [undefined, 'undefined'],
  ])('shows %p as %s', (value, shown) => {
    expect(show(value)).toBe(shown);
  });
});

describe('a complaint', () => {
  const failing = (message: string) => (): never => {
    throw new RangeError(message);
  };

  it('says where it is about', () => {
    expect(() => located('elimit', failing('x must be 1'))).toThrow(
      new RangeError('elimit: x must be 1'),
    );
    expect(located('elimit', () => 7)).toBe(7);
  });

  it.each([
    ['rate must be an object', 'mine must be an object'],
    ['rate.burst must be 1', 'mine.burst must be 1'],
    ['rate.rate must be 1', 'mine.rate must be 1'], // an option of the part's own name
    ['rate.limit and rate.rate exclude each other', 'mine.limit and mine.rate exclude each other'],
    ['a store said: rate.burst', 'a store said: rate.burst'], // somebody else's
  ])('has the name its user knows: %s', (message, told) => {
    expect(() => renamed('rate', 'mine', failing(message))).toThrow(new RangeError(told));
  });
});
