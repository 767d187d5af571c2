import { serverAdapterCases } from '@elimit/testkit';
import { describe, it } from '@jest/globals';
import { EXPRESS, expressHarness } from './harness.js';

describe.each(EXPRESS)('express $version', ({ version, express }) => {
  it.each(serverAdapterCases(expressHarness(version, express)))('$name', ({ run }) => run());
});
