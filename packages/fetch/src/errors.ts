import { outboundFactsOf } from '@elimit/client';

/**
 * The error of a call, as users of `fetch` know it: a TypeError with a `cause`, and here with `code`, `brpcCode` and
 * the `status` with which a server should answer for it; or the reason of the caller's own signal.
 */
export function errorFor(error: unknown, callers: AbortSignal | null | undefined): unknown {
  if (callers?.aborted) return callers.reason as unknown;
  const failed =
    error instanceof TypeError ? error : new TypeError('fetch failed', { cause: error });
  const { code, brpcCode, status } = outboundFactsOf(failed);
  return Object.assign(
    failed,
    { status, statusCode: status, expose: false },
    code === undefined ? {} : { code },
    brpcCode === undefined ? {} : { brpcCode },
  );
}
