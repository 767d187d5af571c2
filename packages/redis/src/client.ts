import { objectOf, RateStoreError } from '@elimit/core';
import {
  argumentsOf,
  replyOf,
  TAKE_SCRIPT,
  TAKE_SHA,
  type TakeCall,
  type TakeReply,
} from './script.js';

/** What is used of an ioredis client, single or cluster. */
export interface IoRedisClient {
  /** `ready`, `connecting`, `reconnecting`, … */
  readonly status?: string;
  evalsha(sha: string, keys: number, ...args: string[]): Promise<unknown>;
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>;
  del(key: string): Promise<unknown>;
}

/** What is used of a node-redis client, single or cluster. */
export interface NodeRedisClient {
  readonly isReady?: boolean;
  readonly isOpen?: boolean;
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  del(key: string): Promise<unknown>;
}

/** A client of either library. It stays the user's: never opened, never closed here. */
export type RedisClient = IoRedisClient | NodeRedisClient;

/** The one client whose commands are used, whichever library it is of. */
export class Connection {
  readonly #client: RedisClient;
  #wasReady = false;

  constructor(client: RedisClient) {
    objectOf('redisStore: client', client);
    const isKnown =
      ('evalSha' in client || 'evalsha' in client) && typeof client.eval === 'function';
    if (!isKnown)
      throw new TypeError('redisStore: client must be an ioredis or a node-redis client');
    this.#client = client;
  }

  /** One atomic step on one key. Rejects with a `RateStoreError`, and at once while there is no connection. */
  async take(key: string, call: TakeCall): Promise<TakeReply> {
    this.#needReady();
    const args = argumentsOf(call);
    try {
      return replyOf(await this.#evaluate(key, args));
    } catch (error) {
      throw storeError(error);
    }
  }

  async remove(key: string): Promise<void> {
    this.#needReady();
    try {
      await this.#client.del(key);
    } catch (error) {
      throw storeError(error);
    }
  }

  async #evaluate(key: string, args: string[]): Promise<unknown> {
    try {
      return await this.#run(false, key, args);
    } catch (error) {
      // a server that was restarted, flushed or failed over has to be told the script once
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error;
      return this.#run(true, key, args);
    }
  }

  #run(whole: boolean, key: string, args: string[]): Promise<unknown> {
    const client = this.#client;
    if ('evalSha' in client) {
      const options = { keys: [key], arguments: args };
      return whole ? client.eval(TAKE_SCRIPT, options) : client.evalSha(TAKE_SHA, options);
    }
    return whole
      ? client.eval(TAKE_SCRIPT, 1, key, ...args)
      : client.evalsha(TAKE_SHA, 1, key, ...args);
  }

  /**
   * Both libraries queue commands while they have no connection and send them all once they have one:
   * a burst of counts that came too late. So nothing is sent then, except before the very first connection.
   */
  #needReady(): void {
    const { status, isReady, isOpen } = this.#client as IoRedisClient & NodeRedisClient;
    if (status === 'ready' || isReady === true) this.#wasReady = true;
    const isDown =
      status === undefined
        ? isOpen === false || (isReady === false && this.#wasReady)
        : status !== 'ready' && (this.#wasReady || !STARTING.has(status));
    if (isDown) throw new RateStoreError('no connection to Redis', 'store');
  }
}

const STARTING = new Set(['wait', 'connecting', 'connect']);

function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null | undefined)?.message ?? error);
}

function storeError(error: unknown): RateStoreError {
  const message = messageOf(error);
  // another application's value lives at our key: that key's trouble, not the store's
  const scope = message.includes('WRONGTYPE') ? 'key' : 'store';
  return new RateStoreError(message, scope, { cause: error });
}
