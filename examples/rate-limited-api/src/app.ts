import type { OnEvent } from '@elimit/core';
import { rateLimit } from '@elimit/express';
import { type RedisClient, redisStore } from '@elimit/redis';
import express, { type Express, type Request } from 'express';

/** Who may call, by token. A real service asks its user database. */
const USERS = new Map([
  ['token-ann', 'ann'],
  ['token-bob', 'bob'],
]);

/** The user is known by a token that we check, never by a header that anybody can make up. */
function userOf(req: Request): string | undefined {
  return USERS.get(req.headers.authorization?.replace('Bearer ', '') ?? '');
}

export interface Settings {
  readonly redis: RedisClient;
  readonly onEvent: OnEvent;
  /** How long one request waits for Redis. @default 50 */
  readonly storeTimeoutMs?: number | undefined;
}

/** An API whose limits hold over all processes that share one Redis. */
export function createApp({ redis, onEvent, storeTimeoutMs }: Settings): {
  app: Express;
  close: () => Promise<void>;
} {
  const app = express();
  const shared = { store: redisStore(redis, { prefix: 'example' }), storeTimeoutMs, onEvent };

  // outermost: everybody together, 200 a second, so that no crowd of users is too much. Leases: nearly free
  const everybody = rateLimit({
    name: 'everybody',
    limit: 200,
    windowMs: 1000,
    keyGenerator: () => 'all',
    skip: (req) => req.path === '/healthz',
    ...shared,
  });
  app.use(everybody);
  app.get('/healthz', (_req, res) => {
    res.send('ok');
  });

  app.use((req, res, next) => {
    if (userOf(req) === undefined) res.status(401).json({ error: 'who are you?' });
    else next();
  });

  // each user: 10 in ten seconds, and an export costs five of them
  const perUser = rateLimit({
    name: 'user',
    limit: 10,
    windowMs: 10_000,
    keyGenerator: (req) => userOf(req) ?? 'nobody',
    cost: (req) => (req.path === '/export' ? 5 : 1), // below /api
    ...shared,
  });
  app.use('/api', perUser);
  app.get('/api/orders', (req, res) => {
    res.json({ user: userOf(req), pid: process.pid, orders: [] });
  });
  app.get('/api/export', (req, res) => {
    res.json({ user: userOf(req), pid: process.pid, rows: 0 });
  });

  return {
    app,
    close: async () => {
      await Promise.all([everybody.close(), perUser.close()]); // gives unspent leases back
    },
  };
}
