import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll } from '@jest/globals';
import { Redis } from 'ioredis';

/** A server of the file's own, and a client of it, there while its tests run. */
export function ownRedis(): { readonly server: RedisServer; readonly io: Redis } {
  const own = {} as { server: RedisServer; io: Redis };
  beforeAll(async () => {
    own.server = await RedisServer.start();
    own.io = new Redis(own.server.port);
  });
  afterAll(async () => {
    own.io.disconnect();
    await own.server.stop();
  });
  return own;
}
