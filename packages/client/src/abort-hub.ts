/** Who listens to which signal. */
const hubs = new WeakMap<AbortSignal, Hub>();

interface Hub {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/**
 * Calls back once when the signal aborts. One listener on the signal however many calls share it: a
 * request's signal that goes with twenty calls is no leak, but Node warns from the eleventh listener on.
 *
 * @returns ends the listening
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks } = hubs.get(signal) ?? createHub(signal);
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return;
    const hub = hubs.get(signal);
    if (hub?.callbacks !== callbacks) return;
    hubs.delete(signal);
    signal.removeEventListener('abort', hub.listener);
  };
}

function createHub(signal: AbortSignal): Hub {
  const callbacks = new Set<() => void>();
  const listener = () => {
    hubs.delete(signal);
    for (const callback of callbacks) callback();
  };
  const hub = { callbacks, listener };
  hubs.set(signal, hub);
  signal.addEventListener('abort', listener, { once: true });
  return hub;
}
