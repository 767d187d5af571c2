import { integerIn, objectOf, show, type Timers, textOf } from '@elimit/core';

/** One node as users write it: an origin, or an origin with a weight. */
export type NodeValue = string | URL | NodeOptions;

/** A node with what there is to say of it. */
export interface NodeOptions {
  /** An origin: scheme, host and port, nothing more. */
  readonly url: string | URL;
  /** Its share of traffic under `weighted` and `leastLoaded`, 1 to 10 000. @default 1 */
  readonly weight?: number | undefined;
  /** Sent as `Host`, and as the TLS server name. @default the URL's own */
  readonly host?: string | undefined;
}

/** One node, checked. */
export interface NodeEntry {
  readonly url: URL;
  readonly weight: number;
  readonly host: string | undefined;
}

/** Who hears what a naming service finds. */
export interface NamingListener {
  /** The whole list as it is now. */
  update(nodes: readonly NodeValue[]): void;
  /** The list could not be read; the last one stands. */
  failed(error: unknown): void;
}

/** Finds the nodes of a service, and tells again when they change. Users bring their own by this contract. */
export interface Naming {
  /**
   * Begins to watch. Tells the list at once where it can, and throws if that first list cannot be used.
   *
   * @returns ends the watching; nothing is told afterwards
   */
  watch(listener: NamingListener, timers: Timers): () => void;
}

const NODE_KEYS = { url: 0, weight: 0, host: 0 };

/** The list, checked: at least one node, each an http or https origin, none twice. */
export function resolveNodes(of: string, values: readonly NodeValue[]): NodeEntry[] {
  if (!Array.isArray(values)) {
    throw new TypeError(`${of} must be an array of origins, got ${show(values)}`);
  }
  if (values.length === 0) throw new RangeError(`${of} must name at least one node, got none`);
  const seen = new Set<string>();
  return values.map((value: NodeValue, i) => {
    const node = resolveNode(`${of}[${i}]`, value);
    const key = `${node.url.origin} ${node.host ?? ''}`;
    if (seen.has(key)) {
      throw new RangeError(`${of}[${i}] names ${node.url.origin} a second time; use weight`);
    }
    seen.add(key);
    return node;
  });
}

function resolveNode(of: string, value: NodeValue): NodeEntry {
  if (typeof value === 'string' || value instanceof URL) {
    return { url: originOf(of, value), weight: 1, host: undefined };
  }
  objectOf(of, value);
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(NODE_KEYS, key)) {
      throw new TypeError(`${of}.${key} is not an option; known: url, weight, host`);
    }
  }
  return {
    url: originOf(`${of}.url`, value.url),
    weight: integerIn(`${of}.weight`, value.weight ?? 1, 1, 10_000),
    host: value.host === undefined ? undefined : textOf(`${of}.host`, value.host),
  };
}

/** The URL, if it is an http or https origin and nothing more; else an error that says what would be right. */
export function originOf(of: string, value: string | URL): URL {
  if (typeof value !== 'string' && !(value instanceof URL)) {
    throw new TypeError(`${of} must be an origin like "http://10.0.0.1:8080", got ${show(value)}`);
  }
  const url = URL.canParse(String(value)) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new RangeError(
      `${of} must be an origin like "http://10.0.0.1:8080", got ${show(String(value))}`,
    );
  }
  const extra = `${url.username}${url.password}${url.pathname.slice(1)}${url.search}${url.hash}`;
  if (extra !== '') {
    throw new RangeError(`${of} must be an origin without path, query or user: "${url.origin}"`);
  }
  return url;
}
