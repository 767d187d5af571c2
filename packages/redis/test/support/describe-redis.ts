import { RedisServer } from '@elimit/testkit';
import { describe } from '@jest/globals';

const { skip } = describe;

/** `describe` where a Redis can be had; elsewhere skipped in plain words, except in CI, where it fails. */
export const describeRedis =
  RedisServer.program() !== undefined || process.env.CI ? describe : skip;
if (describeRedis === skip) {
  process.stderr.write(`skipped: tests against Redis: ${RedisServer.MISSING}\n`);
}
