import { serverAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { bareHarness } from './bare-harness.js';

describe('a bare server', () => {
  it.each(serverAdapterCases(bareHarness))(
    '$name',
    async ({ run }) => {
      await expect(run()).resolves.toBeUndefined();
    },
    30_000,
  );
});
