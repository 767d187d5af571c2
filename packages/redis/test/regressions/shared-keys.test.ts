import { systemClock, systemTimers } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { describeRedis } from '../support/describe-redis.js';

let server: RedisServer;
let io: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  io = new Redis(server.port);
});
afterAll(async () => {
  io.disconnect();
  await server.stop();
});

const context = { clock: systemClock, timers: systemTimers, random: () => 0.5 };

describeRedis('limiters that share their keys', () => {
  it('are told apart when one store serves several of them: no more than a tenth is out in all', async () => {
    const store = redisStore(io);
    const quota = { rate: 1000, burst: 1000 };
    const sessions = Array.from({ length: 4 }, () => store.open({ ...context, name: 'one' }));
    for (const session of sessions) await session.take('k', 1, quota);
    expect(sessions.at(-1)?.holders).toBe(4);
    // 4 were spent, 100 may be out on leases; what has come in meanwhile only adds
    expect(Number(await io.hget('elimit:one:k', 't'))).toBeGreaterThanOrEqual(1000 - 4 - 100);
    await Promise.all(sessions.map((session) => session.close()));
  });
});
