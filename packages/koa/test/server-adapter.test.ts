import { serverAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { KOA, koaHarness } from './harness.js';

describe.each(KOA)('koa $version', ({ version, Koa }) => {
  it.each(serverAdapterCases(koaHarness(version, Koa)))(
    '$name',
    async ({ run }) => {
      await expect(run()).resolves.toBeUndefined();
    },
    30_000,
  );
});
