import type { Attempt } from '@elimit/client';

/**
 * The same body, except that an error of its own is told as the caller's fault: whoever reads it makes an error of the
 * request out of it, which looks like the node's. Only bodies that are read once can fail.
 */
export function watchedUpload(attempt: Attempt, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  if (body instanceof ReadableStream) return body.locked ? body : watchedStream(attempt, body);
  return Symbol.asyncIterator in body ? watched(attempt, body as AsyncIterable<unknown>) : body;
}

async function* watched(attempt: Attempt, body: AsyncIterable<unknown>): AsyncGenerator {
  try {
    yield* body;
  } catch (error) {
    attempt.callersFault();
    throw error;
  }
}

/** Not by a generator: that one could not be cancelled while it waits for a chunk. */
function watchedStream(attempt: Attempt, body: ReadableStream<unknown>): ReadableStream<unknown> {
  const reader = body.getReader();
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          attempt.callersFault();
          controller.error(error);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 }, // reads nothing that nobody asked for
  );
}
