import { serverAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { nestHarness, PLATFORMS } from './harness.js';

describe.each(PLATFORMS)('nest on %s', (platform) => {
  it.each(serverAdapterCases(nestHarness(platform)))(
    '$name',
    async ({ run }) => {
      await expect(run()).resolves.toBeUndefined();
    },
    30_000,
  );
});
