import { randomUUID } from 'node:crypto';
import {
  booleanOf,
  functionOf,
  knownKeys,
  numberIn,
  type RateStore,
  type RateStoreContext,
  type RateStoreSession,
  textOf,
} from '@elimit/core';
import { Connection, type RedisClient } from './client.js';
import { RedisSession } from './session.js';

/** Options of {@link redisStore}. */
export interface RedisStoreOptions {
  /** Starts every key. No braces: they would put all keys into one slot of a cluster. @default 'elimit' */
  readonly prefix?: string | undefined;
  /** Takes batches of tokens and spends them here, so that most calls cost no round trip. @default true */
  readonly lease?: boolean | undefined;
  /** How long a batch may be spent, 100 to 60 000 ms. Longer: fewer round trips, and more lost when a process dies. @default 2000 */
  readonly leaseMs?: number | undefined;
  /** The caller's own time instead of the server's, in microseconds. For tests: clocks of processes differ. */
  readonly nowUs?: (() => number) | undefined;
}

/** Defaults of {@link RedisStoreOptions}. */
export const REDIS_STORE_DEFAULTS = {
  prefix: 'elimit',
  lease: true,
  leaseMs: 2000,
  nowUs: undefined,
} as const satisfies Record<keyof RedisStoreOptions, unknown>;

/**
 * A shared rate store on Redis 5 or later, single or cluster: one atomic script on one key, with the
 * server's time, and an end to the life of every key.
 *
 * @param client - an ioredis or node-redis client; it stays yours to connect and to close
 * @throws TypeError, RangeError for bad options or something else than a client
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RateStore {
  const { prefix, lease, leaseMs, nowUs } = resolveRedisStoreOptions(options);
  const connection = new Connection(client);
  const leaseUs = lease ? Math.round(leaseMs * 1000) : 0;
  return {
    open(context: RateStoreContext): RateStoreSession {
      // those that hold tokens are told apart by this, in each key's own hash: limiters of one process, too
      const holder = randomUUID().slice(0, 13);
      return new RedisSession({ context, connection, prefix, holder, leaseUs, nowUs });
    },
  };
}

interface ResolvedOptions {
  readonly prefix: string;
  readonly lease: boolean;
  readonly leaseMs: number;
  readonly nowUs: (() => number) | undefined;
}

function resolveRedisStoreOptions(options: RedisStoreOptions): ResolvedOptions {
  knownKeys('redisStore', options, REDIS_STORE_DEFAULTS);
  const d = REDIS_STORE_DEFAULTS;
  const { nowUs } = options;
  const prefix = textOf('redisStore.prefix', options.prefix ?? d.prefix);
  if (/[{}]/.test(prefix)) {
    throw new RangeError(
      'redisStore.prefix must hold no braces: they would put all keys into one slot of a cluster',
    );
  }
  return {
    prefix,
    lease: booleanOf('redisStore.lease', options.lease ?? d.lease),
    leaseMs: numberIn('redisStore.leaseMs', options.leaseMs ?? d.leaseMs, 100, 60_000),
    nowUs: nowUs === undefined ? nowUs : functionOf('redisStore.nowUs', nowUs),
  };
}
