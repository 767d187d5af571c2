import { createGuard, createGuards, createRegistry } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import { type LimitOptions, type LimitTarget, RequestLimit } from '../src/index.js';

function make(target: unknown, options: unknown): RequestLimit {
  return new RequestLimit(target as LimitTarget, options as LimitOptions, {
    defaultName: 'test',
    methodNameOf: () => undefined,
  });
}

describe('the options of limit', () => {
  it.each<[options: unknown, message: RegExp]>([
    [{ nmae: 'x' }, /^limit\.nmae is not an option; known: name, skip, /],
    [{ name: '' }, /^limit\.name must be a non-empty string, got ""$/],
    [{ skip: true }, /^limit\.skip must be a function, got true$/],
    [{ handler: 503 }, /^limit\.handler must be a function, got 503$/],
    [{ priority: 'critical' }, /^limit\.priority must be a function, got "critical"$/],
    [{ onEvent: [] }, /^limit\.onEvent must be a function, got an array of 0$/],
    [{ isFailure: 500 }, /^limit\.isFailure must be a function, got 500$/],
    [{ statusCode: 200 }, /^limit\.statusCode must be a whole number from 400 to 599, got 200$/],
    [
      { statusCode: '503' },
      /^limit\.statusCode must be a whole number from 400 to 599, got "503"$/,
    ],
    [{ message: '' }, /^limit\.message must be a non-empty string, got ""$/],
    [{ dryRun: 1 }, /^limit\.dryRun must be true or false, got 1$/],
    [{ timeoutMs: 0 }, /^limit\.timeoutMs must be a whole number of at least 1, got 0$/],
    [
      { deadlineHeaders: 'x-y' },
      /^limit\.deadlineHeaders must be an array of names or false, got "x-y"$/,
    ],
    [
      { deadlineHeaders: ['a', 1] },
      /^limit\.deadlineHeaders\[1\] must be a non-empty string, got 1$/,
    ],
    [{ maxQueued: 0 }, /^limit\.maxQueued must be a whole number from 1 to 100000, got 0$/],
    [{ drainHoldMs: 0 }, /^limit\.drainHoldMs must be a number of at least 1, got 0$/],
    [{ drainHoldMs: Number.NaN }, /^limit\.drainHoldMs must be a number of at least 1, got NaN$/],
    [
      { abandonedHoldMs: -1 },
      /^limit\.abandonedHoldMs must be 'auto' or a number of at least 0, got -1$/,
    ],
    [
      { abandonedHoldMs: 'Auto' },
      /^limit\.abandonedHoldMs must be 'auto' or a number of at least 0, got "Auto"$/,
    ],
    [{ maxHoldMs: '1000' }, /^limit\.maxHoldMs must be a number of at least 1, got "1000"$/],
    [{ maxBodies: 0 }, /^limit\.maxBodies must be 'auto' or a number of at least 1, got 0$/],
    [{ bodyHoldMs: 0 }, /^limit\.bodyHoldMs must be a number of at least 1, got 0$/],
    [{ maxStreams: -1 }, /^limit\.maxStreams must be a number of at least 0, got -1$/],
    [[], /^limit must be an object, got an array of 0$/],
  ])('%j is refused with option, range and value', (options, message) => {
    expect(() => make(5, options)).toThrow(message);
  });

  it.each(['dryRun', 'random', 'registry'])(
    '%s belongs to a guard that was made before',
    (option) => {
      const registry = createRegistry();
      const options = { [option]: { dryRun: true, random: Math.random, registry }[option] };
      const message = `limit.${option} belongs to the guard: give it to createGuard or createGuards`;
      expect(() => make(createGuard({ registry }), options)).toThrow(message);
      expect(() => make(createGuards({ registry }), options)).toThrow(message);
      expect(() => make(5, { registry, ...options })).not.toThrow();
    },
  );

  it('takes undefined for absent, Infinity for never, and writes to nothing', () => {
    const options = Object.freeze({
      name: undefined,
      skip: undefined,
      drainHoldMs: Number.POSITIVE_INFINITY,
      maxBodies: Number.POSITIVE_INFINITY,
      registry: createRegistry(),
    });
    expect(make('auto', options).guard?.name).toBe('test');
  });
});
