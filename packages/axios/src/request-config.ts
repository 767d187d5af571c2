/** What a request may say besides axios's own options. */
export interface BreakerRequestConfig {
  /** It may be sent again even if the server may have acted on it already. @default false: only methods that may be repeated */
  resend?: boolean | undefined;
  /** False: isolations are neither asked nor taught by this call. @default true */
  breaker?: boolean | undefined;
  /** Tries after the first, 0 to 100. @default the channel's */
  maxRetries?: number | undefined;
  /**
   * Time left of a deadline that came in from outside, in milliseconds: `timeLeftOf(req)`. It can only shorten the
   * call, and a timeout that it causes is not the node's failure. @default none
   */
  carriedTimeoutMs?: number | undefined;
}

/* oxlint-disable typescript/no-explicit-any -- written as axios writes it, to be merged with it */
declare module 'axios' {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  interface AxiosRequestConfig<D = any, P = any> extends BreakerRequestConfig {}
}
