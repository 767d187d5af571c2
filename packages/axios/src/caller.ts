import type { InternalAxiosRequestConfig } from 'axios';

export interface Caller {
  /** Aborts when the caller cancels, by a signal or by an old CancelToken; `undefined` if it cannot. */
  readonly signal: AbortSignal | undefined;
  /** Takes the listeners off again. */
  leave(): void;
}

/** True for a caller that has cancelled, in either way. */
export function isCancelled({ signal, cancelToken }: InternalAxiosRequestConfig): boolean {
  return signal?.aborted === true || cancelToken?.reason !== undefined;
}

/** Both of axios's ways to cancel, as one signal whose reason is the token's, if there is one. */
export function callerOf({ signal, cancelToken }: InternalAxiosRequestConfig): Caller {
  if (signal === undefined && cancelToken === undefined) return { signal: undefined, leave() {} };
  const control = new AbortController();
  const abort = (): void => control.abort();
  const cancel = (reason: unknown): void => control.abort(reason);
  if (signal?.aborted) abort();
  signal?.addEventListener?.('abort', abort);
  // types of axios do not show what its own adapters use
  const token = cancelToken as
    | { subscribe(listener: (reason: unknown) => void): void; unsubscribe(listener: unknown): void }
    | undefined;
  token?.subscribe(cancel);
  return {
    signal: control.signal,
    leave() {
      signal?.removeEventListener?.('abort', abort);
      token?.unsubscribe(cancel);
    },
  };
}
