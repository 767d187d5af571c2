import type { CallOptions, Channel } from '@elimit/client';
import { FormData as UndiciFormData } from 'undici';

/** What a call may say besides what every `fetch` knows. */
export interface FetchInit extends RequestInit {
  /** It may be sent again even if the server may have acted on it already. @default false: only methods that may be repeated */
  readonly resend?: boolean | undefined;
  /** False: isolations are neither asked nor taught by this call. @default true */
  readonly breaker?: boolean | undefined;
  /** Tries after the first, 0 to 100. @default the channel's */
  readonly maxRetries?: number | undefined;
  /** Time until the headers of the answer, all tries included, in milliseconds, 1 to 86 400 000. @default the channel's */
  readonly timeoutMs?: number | undefined;
  /**
   * Time left of a deadline that came in from outside, in milliseconds: `timeLeftOf(req)`. It can only shorten the
   * call, and a timeout that it causes is not the node's failure. @default none
   */
  readonly carriedTimeoutMs?: number | undefined;
}

/** A call, read once for all its tries. */
export interface FetchRequest {
  /** An absolute URL, or path and query, from the slash on, for a call to the nodes. */
  readonly path: string;
  readonly init: RequestInit;
  readonly rules: Pick<
    CallOptions,
    | 'method'
    | 'replayable'
    | 'origin'
    | 'resend'
    | 'breaker'
    | 'maxRetries'
    | 'timeoutMs'
    | 'carriedTimeoutMs'
  >;
}

/**
 * @throws TypeError for a URL that is neither absolute nor, on a channel with nodes, a path; and for a second
 * argument that is no object
 */
export function readRequest(
  channel: Channel,
  input: string | URL | Request,
  given?: FetchInit | null,
): FetchRequest {
  const { resend, breaker, maxRetries, timeoutMs, carriedTimeoutMs, ...rest } = definedOf(given);
  const { url, init } = isRequest(input)
    ? { url: input.url, init: merged(initOf(input), rest) }
    : { url: String(input), init: rest };
  const { path, origin } = targetOf(channel, url);
  const { body } = init;
  return {
    path,
    init: body instanceof FormData ? { ...init, body: undiciForm(body) } : init,
    rules: {
      method: init.method ?? 'GET',
      replayable: !isReadOnce(body),
      origin,
      resend,
      breaker,
      maxRetries,
      timeoutMs,
      carriedTimeoutMs,
    },
  };
}

/** What is read of a second argument. By name, as `fetch` does: a Request, or an object of a class, has getters. */
const KEYS = [
  'method',
  'headers',
  'body',
  'signal',
  'redirect',
  'referrer',
  'referrerPolicy',
  'integrity',
  'mode',
  'credentials',
  'cache',
  'keepalive',
  'window',
  'priority',
  'duplex',
  'resend',
  'breaker',
  'maxRetries',
  'timeoutMs',
  'carriedTimeoutMs',
];

/** What is said: `undefined` says nothing, and neither does `null` in place of it all. */
function definedOf(given: FetchInit | null | undefined): FetchInit {
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' && typeof given !== 'function') {
    throw new TypeError(
      `fetch failed: its second argument must be an object, got ${String(given)}`,
    );
  }
  const said: Record<string, unknown> = {};
  for (const key of KEYS) {
    const value = (given as Readonly<Record<string, unknown>>)[key];
    if (value !== undefined) said[key] = value;
  }
  return said;
}

/** As fetch merges them: `body: null` does not take a Request's body away. */
function merged(own: RequestInit, { body, ...rest }: RequestInit): RequestInit {
  return { ...own, ...rest, ...(body !== null && body !== undefined && { body }) };
}

/** Stand for the node where a relative URL is read. Two: one that names a host itself cannot name both. */
const ANY_NODES = ['http://a.invalid', 'http://b.invalid'] as const;

function targetOf(channel: Channel, url: string): { path: string; origin: string | undefined } {
  if (URL.canParse(url)) {
    const { href, origin, protocol } = new URL(url);
    if (protocol === 'http:' || protocol === 'https:') return { path: href, origin };
    throw new TypeError(`fetch failed: ${protocol} is not a protocol for channel ${channel.name}`);
  }
  // read as `fetch` reads it, to whom `\\` is `/` and a tab is nothing: `/\t/host` names a host, too
  const isPath = ANY_NODES.every(
    (node) => URL.canParse(url, node) && new URL(url, node).origin === node,
  );
  if (!channel.hasNodes || !isPath) {
    throw new TypeError(
      `Failed to parse URL from ${url}: ${channel.hasNodes ? 'give a path or a whole URL' : `channel ${channel.name} has no nodes for it`}`,
    );
  }
  const read = new URL(url, ANY_NODES[0]);
  return { path: read.pathname + read.search, origin: undefined };
}

/** A Request of any implementation: the global one is not the `undici` package's. */
function isRequest(input: string | URL | Request): input is Request {
  return typeof input === 'object' && 'headers' in input;
}

function initOf(request: Request): RequestInit {
  const { method, headers, body, signal, redirect, referrer, referrerPolicy, integrity } = request;
  const isReferrerOwn = referrer !== '' && referrer !== 'about:client';
  return {
    method,
    headers: [...headers],
    signal,
    redirect,
    referrerPolicy,
    integrity,
    ...(isReferrerOwn && { referrer }),
    ...(body !== null && { body, duplex: 'half' }),
  };
}

/** The `undici` package does not know the global class, and would send its name as text. */
function undiciForm(form: FormData): NonNullable<RequestInit['body']> {
  const copy = new UndiciFormData();
  for (const [name, value] of form) copy.append(name, value);
  return copy;
}

/** Streams and generators; everything else can be sent twice. */
function isReadOnce(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return 'getReader' in body || 'pipe' in body || Symbol.asyncIterator in body;
}
