import type { IncomingMessage } from 'node:http';
import type { AxiosResponse, InternalAxiosRequestConfig } from 'axios';

/** A stream, as far as it is looked at here. */
export interface ReadableLike {
  readonly errored: unknown;
  once(event: 'close' | 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  destroy(): unknown;
}

/** Node's streams; `form-data` of old is one as well. */
export function isStream(value: unknown): value is ReadableLike {
  return typeof (value as { pipe?: unknown } | null | undefined)?.pipe === 'function';
}

export function isReadOnce(data: unknown): boolean {
  return (
    isStream(data) || typeof (data as { getReader?: unknown } | null)?.getReader === 'function'
  );
}

/**
 * Calls back when the stream that is sent breaks off: axios makes an error of the request out of that.
 *
 * @returns takes the listener off again
 */
export function onUploadError(config: InternalAxiosRequestConfig, failed: () => void): () => void {
  const { data } = config as InternalAxiosRequestConfig<unknown>;
  if (!isStream(data)) return () => {};
  data.once('error', failed);
  return () => void data.off('error', failed);
}

/**
 * Calls back when the connection ends before the answer does. What its reader does to it, with an error or without,
 * destroys the same streams, and is not told: what tells them apart is whose end came first, the socket's or theirs.
 */
export function onBrokenAnswer(
  { request }: AxiosResponse,
  data: ReadableLike,
  broken: (error: unknown) => void,
): void {
  const sent = request as { res?: IncomingMessage; aborted?: boolean } | undefined;
  const source = sent?.res;
  if (source === undefined) {
    // HTTP/2, or an adapter of the caller's own
    data.once('close', () => {
      if (isOfConnection(data.errored)) broken(data.errored);
    });
    return;
  }
  source.once('aborted', () => {
    // `pipeline` and `for await` end it by its request, and so by the socket
    if (source.socket.destroyed && !sent?.aborted) broken(source.errored);
  });
}

function isOfConnection(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null | undefined)?.code);
  return code === 'ECONNRESET' || code.startsWith('ERR_HTTP2_');
}
