import { Readable } from 'node:stream';
import type { Attempt } from './attempt.js';

type Reads = <T extends { readonly done?: boolean }>(read: () => Promise<T>) => Promise<T>;

/** What is told of a body that comes. */
export interface DownloadWatch {
  /** It broke off. Not for what its reader does: that one can cancel it, and not make it fail. */
  broken(error: unknown): void;
  /** Its reader wants no more of it. */
  cancelled(): void;
  /** It has ended, in whatever way; after the others, and maybe twice. */
  closed(): void;
}

/**
 * The body of a request, except that an error of its own is told as the caller's fault: whoever reads it makes an error of the
 * request out of it, which looks like the node's. So does a time that ends while the body has nothing to send. One that
 * was read before is left to undici, which refuses it.
 */
export function watchedUpload(attempt: Attempt, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  if (Readable.isDisturbed(body as Readable)) return body;
  if (body instanceof ReadableStream) {
    return body.locked ? body : watchedStream(readsOf(attempt), body);
  }
  return Symbol.asyncIterator in body
    ? watchedChunks(readsOf(attempt), body as AsyncIterable<unknown>)
    : body;
}

/** Reads, and tells when that fails or does not end with the try. */
function readsOf(attempt: Attempt): Reads {
  let isWaiting = false;
  attempt.signal.addEventListener('abort', () => {
    if (isWaiting) attempt.callersFault();
  });
  return async (read) => {
    isWaiting = true;
    try {
      return await read();
    } catch (error) {
      attempt.callersFault();
      throw error;
    } finally {
      isWaiting = false;
    }
  };
}

function watchedChunks(reads: Reads, body: AsyncIterable<unknown>): AsyncIterable<unknown> {
  return {
    [Symbol.asyncIterator]() {
      let chunks: AsyncIterator<unknown> | undefined;
      return {
        next: () =>
          reads(async () => {
            chunks ??= body[Symbol.asyncIterator]();
            return chunks.next();
          }),
        return: async () => (await chunks?.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}

/** The body of an answer, not locked before: the same stream, which tells how it ends to whoever reads it. */
export function watchedDownload(
  body: ReadableStream<unknown>,
  watch: DownloadWatch,
): ReadableStream<unknown> {
  const reads: Reads = async (read) => {
    try {
      const chunk = await read();
      if (chunk.done === true) watch.closed();
      return chunk;
    } catch (error) {
      watch.broken(error);
      watch.closed();
      throw error;
    }
  };
  return watchedStream(reads, body, () => {
    watch.cancelled();
    watch.closed();
  });
}

/** The same stream, not locked before, whose chunks come through `reads`. */
function watchedStream(
  reads: Reads,
  body: ReadableStream<unknown>,
  cancelled?: () => void,
): ReadableStream<unknown> {
  // not by an iterator: those of streams cannot be cancelled while they wait for a chunk
  const reader = body.getReader();
  let isCancelled = false;
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        const { done, value } = await reads(() => reader.read());
        if (isCancelled) return;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel(reason) {
        isCancelled = true;
        const given = reader.cancel(reason);
        cancelled?.();
        return given;
      },
    },
    { highWaterMark: 0 }, // reads nothing that nobody asked for
  );
}
