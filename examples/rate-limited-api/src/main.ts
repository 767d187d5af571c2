import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { createApp } from './app.js';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
redis.on('error', () => undefined); // the limits go on without it, and say so below

const { STORE_TIMEOUT_MS } = process.env;
const { app, close } = createApp({
  redis,
  onEvent: (event) => {
    if (event.type !== 'reject') console.log(JSON.stringify(event));
  },
  storeTimeoutMs: STORE_TIMEOUT_MS === undefined ? undefined : Number(STORE_TIMEOUT_MS),
});
const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1');
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

process.once('SIGTERM', () => {
  server.close(() => {
    void close().then(() => redis.disconnect());
  });
  server.closeIdleConnections();
});
