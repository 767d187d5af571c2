import type { Server } from 'node:http';

type Listener = (...args: object[]) => void;

/**
 * Tells which properties a request or a response got after its framework had begun: each of them costs its object the
 * hidden class that it shared with the others. Made once all other listeners stand at the server, the framework last.
 */
export class KeyWatch {
  readonly #early = new WeakMap<object, Set<PropertyKey>>();

  constructor(server: Server) {
    const listeners = server.listeners('request') as Listener[];
    const framework = listeners.pop();
    if (framework === undefined) throw new Error('no framework listens at this server');
    server.removeAllListeners('request');
    const note: Listener = (...each) => {
      for (const object of each) this.#early.set(object, new Set(Reflect.ownKeys(object)));
    };
    for (const listener of [...listeners, note, framework]) server.on('request', listener);
  }

  /** Of these objects; one that was not seen ahead of its framework is an error. */
  lateKeysOf(...each: object[]): PropertyKey[] {
    return each.flatMap((object) => {
      const early = this.#early.get(object);
      if (early === undefined) throw new Error('this request came before the watch');
      return Reflect.ownKeys(object).filter((key) => !early.has(key));
    });
  }
}
