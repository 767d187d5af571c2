import { serverAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { EXPRESS, expressHarness } from './harness.js';

describe.each(EXPRESS)('express $version', ({ version, express }) => {
  it.each(serverAdapterCases(expressHarness(version, express)))(
    '$name',
    async ({ run }) => {
      await expect(run()).resolves.toBeUndefined();
    },
    30_000,
  );
});
