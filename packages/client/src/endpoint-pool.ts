import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '@elimit/core';
import type { TlsOptions } from './agent.js';
import { Endpoint, type EndpointSettings } from './endpoint.js';

/** What tells endpoints apart. */
export interface EndpointIdentity {
  readonly url: URL;
  readonly host: string | undefined;
  readonly tls: TlsOptions;
  /** `undefined` for endpoints that are never checked. */
  readonly healthCheck: { readonly path: string | undefined } | undefined;
  readonly connectionGroup: string;
}

/** A leak, or a channel made for each request. */
const MANY_CHANNELS = 100;

/**
 * The key by which endpoints are shared: origin, then whatever of the rest is not at its default.
 * `http://10.0.0.1:8080 host=a.internal tls=1f3b… health=/healthz group=batch`
 */
export function endpointKey(identity: EndpointIdentity): string {
  const { url, host, tls, healthCheck, connectionGroup } = identity;
  const parts = [url.origin];
  if (host !== undefined) parts.push(`host=${host}`);
  const tlsPart = url.protocol === 'https:' ? tlsIdentity(tls) : '';
  if (tlsPart !== '') parts.push(`tls=${tlsPart}`);
  if (healthCheck === undefined) parts.push('health=off');
  else if (healthCheck.path !== undefined) parts.push(`health=${healthCheck.path}`);
  if (connectionGroup !== '') parts.push(`group=${connectionGroup}`);
  return parts.join(' ');
}

/** A short hash of TLS options: different certificates, names or rules, different endpoints. Empty for none. */
function tlsIdentity(tls: TlsOptions): string {
  const entries = Object.entries(tls).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return '';
  const hash = createHash('sha256');
  for (const [name, value] of entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${name}\0`);
    hashValue(hash, value);
  }
  return hash.digest('hex').slice(0, 12);
}

function hashValue(hash: ReturnType<typeof createHash>, value: unknown): void {
  if (value instanceof Uint8Array) hash.update(value);
  else if (Array.isArray(value)) for (const each of value) hashValue(hash, each);
  else if (typeof value === 'object' && value !== null) hash.update(`object ${idOf(value)}`);
  else if (typeof value === 'function') hash.update(`function ${idOf(value)}`);
  else hash.update(String(value));
  hash.update('\0');
}

const ids = new WeakMap<object, number>();
let lastId = 0;

/** Objects and functions are the same only if they are the very same. */
function idOf(value: object): number {
  let id = ids.get(value);
  if (id === undefined) {
    id = ++lastId;
    ids.set(value, id);
  }
  return id;
}

/** The endpoints of a process, by key; each lives as long as a channel holds it. */
export class EndpointPool {
  readonly #endpoints = new Map<string, Endpoint>();

  get size(): number {
    return this.#endpoints.size;
  }

  /** The endpoint of that key: a new one, or the one that others use already. Then the first one's settings stand. */
  get(settings: EndpointSettings): Endpoint {
    const { key } = settings;
    const known = this.#endpoints.get(key);
    if (known === undefined) {
      const endpoint = new Endpoint(settings, () => this.#endpoints.delete(key));
      this.#endpoints.set(key, endpoint);
      return endpoint;
    }
    if (rulesOf(known.settings) !== rulesOf(settings)) {
      known.warnOnce(
        'WARN_ENDPOINT_OPTIONS',
        `channels disagree about the breaker or health check of ${key}; the first one's options stand. ` +
          'Give them the same options, or different connectionGroups.',
      );
    }
    if (known.holders + 1 === MANY_CHANNELS) {
      known.warnOnce(
        'WARN_MANY_CHANNELS',
        `${MANY_CHANNELS} open channels share ${key}: make one channel and keep it, or close() each`,
      );
    }
    return known;
  }
}

/** What all channels of an endpoint should agree on. */
function rulesOf({ breaker, connectTimeoutsAsUnreachable, healthCheck }: EndpointSettings): string {
  const sorted = Object.entries(breaker)
    .filter(([, value]) => value !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const { intervalMs, timeoutMs } = healthCheck ?? { intervalMs: 0, timeoutMs: 0 };
  return JSON.stringify([sorted, connectTimeoutsAsUnreachable, intervalMs, timeoutMs]);
}

const PROCESS_WIDE = Symbol.for('@elimit/client/endpoints');
const pools = new WeakMap<Clock, EndpointPool>();

/** The pool for a clock: one for the process and its own clock, also with two copies of the package; one for each other clock. */
export function poolOf(clock: Clock): EndpointPool {
  if (clock === systemClock) {
    const scope = globalThis as { [PROCESS_WIDE]?: EndpointPool };
    scope[PROCESS_WIDE] ??= new EndpointPool();
    return scope[PROCESS_WIDE];
  }
  let pool = pools.get(clock);
  if (pool === undefined) {
    pool = new EndpointPool();
    pools.set(clock, pool);
  }
  return pool;
}
