import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { type Attempt, isOfDecoder, isWaitedFor, watchedUpload } from '@elimit/client';
import { AxiosError, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';

/** A stream, as far as it is looked at here. */
export interface ReadableLike {
  readonly errored: unknown;
  readonly destroyed?: boolean;
  readonly readableEnded?: boolean;
  once(event: 'close' | 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
  destroy(): unknown;
}

/** Node's streams; `form-data` of old is one as well. */
export function isStream(value: unknown): value is ReadableLike {
  return typeof (value as { pipe?: unknown } | null | undefined)?.pipe === 'function';
}

/** A stream of the web, which axios's `fetch` adapter takes and gives. */
export function isWebStream(value: unknown): value is ReadableStream<unknown> {
  return typeof (value as { getReader?: unknown } | null | undefined)?.getReader === 'function';
}

export function isReadOnce(data: unknown): boolean {
  return isStream(data) || isWebStream(data);
}

/** What is sent in place of `data`: a stream of the web tells by itself when it fails, and cannot be listened to. */
export function watchedData(attempt: Attempt, data: unknown): unknown {
  if (!isWebStream(data)) return data;
  if (data.locked || Readable.isDisturbed(data as unknown as Readable)) attempt.callersFault();
  return watchedUpload(attempt, data);
}

/**
 * Tells the try when it fails by the stream that is sent: that one breaks off, which axios makes an error of the request
 * out of, or has nothing to send when the time ends.
 *
 * @returns takes the listeners off again
 * @throws AxiosError for a stream that is destroyed already: axios would wait for it
 */
export function watchUpload(attempt: Attempt, config: InternalAxiosRequestConfig): () => void {
  const { data } = config as InternalAxiosRequestConfig<unknown>;
  if (!isStream(data)) return () => {};
  if (data.destroyed && !data.readableEnded) {
    attempt.callersFault();
    throw new AxiosError('the stream to send is destroyed', AxiosError.ERR_BAD_REQUEST, config);
  }
  const failed = (): void => attempt.callersFault();
  const aborted = (): void => {
    if (isWaitedFor(data)) attempt.callersFault();
  };
  data.once('error', failed);
  attempt.signal.addEventListener('abort', aborted);
  return () => {
    data.off('error', failed);
    attempt.signal.removeEventListener('abort', aborted);
  };
}

/**
 * Calls back when the connection ends before the answer does, or its content cannot be decoded. What its reader does to
 * it, with an error or without, destroys the same streams, and is not told: what tells a broken connection apart is
 * whose end came first, the socket's or theirs.
 */
export function watchAnswer(
  { request }: AxiosResponse,
  data: ReadableLike,
  { broken, closed }: { broken: (error: unknown) => void; closed: () => void },
): void {
  const sent = request as { res?: IncomingMessage; aborted?: boolean } | undefined;
  const source = sent?.res;
  // one listener for both: a decoder has nearly as many as Node allows without a warning
  data.once('close', () => {
    const { errored } = data;
    // without a source: HTTP/2, or an adapter of the caller's own
    if (isOfDecoder(errored) || (source === undefined && isOfConnection(errored))) broken(errored);
    closed();
  });
  source?.once('aborted', () => {
    // `pipeline` and `for await` end it by its request, and so by the socket
    if (source.socket.destroyed && !sent?.aborted) broken(source.errored);
  });
}

function isOfConnection(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null | undefined)?.code);
  return code === 'ECONNRESET' || code.startsWith('ERR_HTTP2_');
}
