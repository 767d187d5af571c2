import type { Attempt } from '@elimit/client';
import { AxiosHeaders, type InternalAxiosRequestConfig } from 'axios';
import type { Target } from './target.js';

export interface TryConfig {
  readonly config: InternalAxiosRequestConfig;
  /** Ends its request, for a stream to be read that nobody wants more of. */
  readonly end: () => void;
  /** Takes the listener off the caller's signal. */
  readonly unlink: () => void;
}

/** The config of one try: a copy, since adapters write into headers. */
export function configOfTry(
  attempt: Attempt,
  config: InternalAxiosRequestConfig,
  { origin, path }: Target,
): TryConfig {
  const isToBeRead = config.responseType === 'stream';
  const { signal, end, unlink } = linked(attempt.signal, config.signal, isToBeRead);
  const headers = new AxiosHeaders(config.headers);
  const { host, ...others } = attempt.headers;
  headers.set(others);
  if (host !== undefined) headers.set('Host', host, false);
  const own: InternalAxiosRequestConfig = {
    ...config,
    headers,
    signal,
    timeout: 0, // the channel keeps the time of all tries
    ...agentsFor(attempt, attempt.endpoint.url.protocol, config),
    beforeRedirect: (options, response, request) => {
      try {
        config.beforeRedirect?.(options, response, request);
      } catch (error) {
        attempt.callersFault();
        throw error;
      }
      followTo(attempt, options as RedirectOptions, config);
    },
  };
  if (origin === undefined) {
    own.url = attempt.endpoint.url.origin + path;
    delete own.baseURL;
  }
  return { config: own, end, unlink };
}

/** What follow-redirects hands to `beforeRedirect`, as far as it matters here. */
interface RedirectOptions {
  readonly href: string;
  readonly protocol: string;
  headers: Record<string, string>;
  agents: { http?: unknown; https?: unknown };
}

/** The next request goes to that origin's breaker, and through its agent: other hosts get other certificates. */
function followTo(
  attempt: Attempt,
  options: RedirectOptions,
  config: InternalAxiosRequestConfig,
): void {
  const next = attempt.redirected(options.href);
  const { httpAgent, httpsAgent } = agentsFor(next, options.protocol, config);
  options.agents = { http: httpAgent, https: httpsAgent };
  Object.assign(options.headers, next.headers);
}

/** The caller's own agents, else the endpoint's: that one tells connect timeouts from late answers. */
function agentsFor(
  attempt: Attempt,
  protocol: string,
  { httpAgent, httpsAgent }: InternalAxiosRequestConfig,
): { httpAgent: unknown; httpsAgent: unknown } {
  const isHttps = protocol === 'https:';
  return {
    httpAgent: (httpAgent as unknown) ?? (isHttps ? undefined : attempt.agent),
    httpsAgent: (httpsAgent as unknown) ?? (isHttps ? attempt.agent : undefined),
  };
}

/**
 * Ends with the try, and with the caller: a stream that the caller has got already is still the caller's to cancel.
 * By hand, since `AbortSignal.any` on a signal that lives long leaks on some versions of Node.
 */
function linked(
  own: AbortSignal,
  callers: InternalAxiosRequestConfig['signal'],
  hasEnd: boolean,
): { signal: AbortSignal; end: () => void; unlink: () => void } {
  if (callers?.addEventListener === undefined && !hasEnd) {
    return { signal: own, end: () => {}, unlink: () => {} };
  }
  const control = new AbortController();
  const abort = (): void => control.abort();
  if (own.aborted || callers?.aborted) abort();
  own.addEventListener('abort', abort, { once: true });
  callers?.addEventListener?.('abort', abort);
  return {
    signal: control.signal,
    end: abort,
    unlink: () => void callers?.removeEventListener?.('abort', abort),
  };
}
