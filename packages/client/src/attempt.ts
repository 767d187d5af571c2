import type http from 'node:http';
import type { TlsOptions } from './agent.js';
import type { Connections, Endpoint } from './endpoint.js';

/** The endpoint of one try, as far as a transport needs to know it. */
export interface AttemptEndpoint {
  /** Its key, as in snapshots and events. */
  readonly name: string;
  /** Its origin as a URL: resolve paths against it. */
  readonly url: URL;
  /** Sent as `Host`, if it is not the URL's own. */
  readonly host: string | undefined;
  /** For https: what `tls.connect` takes. */
  readonly tls: TlsOptions;
}

/** One try of a call: what a transport is given. */
export interface Attempt {
  readonly endpoint: AttemptEndpoint;
  /** Ends with the try's time, the call's, the caller's own signal, or another try's answer. */
  readonly signal: AbortSignal;
  /** What this try may take, in whole milliseconds. */
  readonly timeoutMs: number;
  /** The time for a TCP connection, in milliseconds; `agent` keeps it by itself. */
  readonly connectTimeoutMs: number;
  /** To be sent along: the time left, and `host` if it is not the URL's own. A fresh object. */
  readonly headers: Record<string, string>;
  /** 0 for the first try. */
  readonly attempt: number;
  /** True for a backup request. */
  readonly isBackup: boolean;
  /** A `node:http` or `node:https` agent that tells connect timeouts from late answers. Made when first asked for. */
  readonly agent: http.Agent;
  /**
   * Connections of another kind than `agent`'s, kept by the endpoint: they are dropped with its isolation
   * and its end. Made when first asked for, one for each kind, and told whom to tell of each TCP connection.
   */
  connections<T extends Connections>(kind: symbol, create: (connected: () => void) => T): T;
  /**
   * Tells that the endpoint has sent the request on to another origin, and gives what the way there needs. That
   * origin's breaker is asked; what happens from now on is its doing, not this endpoint's.
   *
   * @throws NoEndpointError if the origin is isolated
   */
  redirected(to: string | URL): Attempt;
  /**
   * Tells that the answer of this try, good at first, broke off in its body: counted as a failure, unless the caller's
   * signal has aborted. Not to be told of a body that the caller wants no more of.
   */
  brokeOff(error: unknown): void;
  /**
   * Tells that this try fails by the caller's own doing, as with a header that cannot be sent or an upload that breaks
   * off: whatever it is rejected with is not held against the endpoint, and the request is not sent again.
   */
  callersFault(): void;
}

/** Does one try: sends the request, and resolves with its answer. */
export type TryFn<T> = (attempt: Attempt) => T | PromiseLike<T>;

/** How one attempt is put together. */
export interface AttemptFacts {
  readonly endpoint: Endpoint;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly timeoutHeader: string | undefined;
  readonly attempt: number;
  readonly isBackup: boolean;
  readonly redirected: (to: string | URL) => Attempt;
  readonly brokeOff: (error: unknown) => void;
  readonly callersFault: () => void;
}

export function createAttempt(facts: AttemptFacts): Attempt {
  const { endpoint, signal, timeoutMs, connectTimeoutMs, timeoutHeader } = facts;
  const { key, url, host, tls } = endpoint.settings;
  const headers: Record<string, string> = {};
  if (timeoutHeader !== undefined) headers[timeoutHeader] = String(timeoutMs);
  if (host !== undefined) headers.host = host;
  return {
    endpoint: { name: key, url, host, tls },
    signal,
    timeoutMs,
    connectTimeoutMs,
    headers,
    attempt: facts.attempt,
    isBackup: facts.isBackup,
    get agent() {
      return endpoint.agent(connectTimeoutMs);
    },
    connections: (kind, create) => endpoint.connections(kind, create),
    redirected: facts.redirected,
    brokeOff: facts.brokeOff,
    callersFault: facts.callersFault,
  };
}
