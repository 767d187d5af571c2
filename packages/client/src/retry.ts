import type { Verdict } from './verdict.js';

/** What a caller says about its request. */
export interface ResendRules {
  /** The HTTP method, in any case. Without one nothing is known, and the call is treated like a POST. */
  readonly method?: string | undefined;
  /** The request may be sent again even if the server may have acted on it already. @default false */
  readonly resend?: boolean | undefined;
  /** False for a body that can be read once only (a stream): it is never sent again. @default true */
  readonly replayable?: boolean | undefined;
}

/** Methods that may be repeated by their definition (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

/** True if sending the request a second time can do no harm, though the first may have arrived. */
export function isRepeatable({ method = 'POST', resend = false, replayable = true }: ResendRules) {
  return replayable && (resend || IDEMPOTENT.has(method.toUpperCase()));
}

/** True if another try makes sense after this one, and can do no harm. */
export function mayRetry(
  verdict: Verdict,
  rules: ResendRules,
  retryStatuses: ReadonlySet<number>,
): boolean {
  const { connect, refusal = false, status, safeToResend = false } = verdict;
  const retriable =
    verdict.retriable ??
    (connect !== undefined || refusal || (status !== undefined && retryStatuses.has(status)));
  if (!retriable || rules.replayable === false) return false;
  return connect !== undefined || refusal || safeToResend || isRepeatable(rules);
}
