const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back once when the signal aborts. A signal gets one listener, however many calls share it: Node warns
 * of a leak from the eleventh on.
 *
 * @param signal - not aborted yet
 * @returns forgets the callback
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = callbacksOf.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => callbacks.delete(callback);
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  callbacksOf.set(signal, callbacks);
  signal.addEventListener(
    'abort',
    () => {
      callbacksOf.delete(signal);
      for (const callback of callbacks) callback();
    },
    { once: true },
  );
  return callbacks;
}
