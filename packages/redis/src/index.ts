export type { IoRedisClient, NodeRedisClient, RedisClient } from './client.js';
export { type RedisStoreOptions, redisStore } from './redis-store.js';
