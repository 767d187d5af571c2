import { createGuard, createGuards } from '@elimit/core';
import { guardSuite } from '@elimit/testkit';
import { describe, it } from '@jest/globals';

describe('a guard of its own', () => {
  guardSuite(it, { create: createGuard });
});

describe('a method’s guard, behind a server-level cap', () => {
  guardSuite(it, {
    create: ({ limit = 'auto', ...options }) =>
      createGuards({ ...options, serverMaxConcurrency: 1000, methods: { m: limit } }).guardOf('m'),
  });
});

describe('a server-level guard', () => {
  guardSuite(it, {
    create: ({ limit, ...options }) =>
      createGuards({ ...options, serverMaxConcurrency: limit }).server,
  });
});
