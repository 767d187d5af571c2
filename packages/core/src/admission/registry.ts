import type { FlagSnapshot, Snapshot } from '../metrics/snapshot.js';

/** Whatever can be read by pages and collectors: a guard, a rate limiter, a breaker, an endpoint. */
export interface SnapshotSource {
  snapshot(): Snapshot;
  /** Its options, for the `/flags` page. */
  flags?(): readonly FlagSnapshot[];
  /** Changes live options; throws on bad ones and then changes nothing. */
  configure?(partial: Readonly<Record<string, unknown>>): void;
}

/** Knows who is alive. Holds its members weakly: being registered keeps nothing in memory. */
export interface Registry {
  add(source: SnapshotSource): void;
  remove(source: SnapshotSource): void;
  /** The members still alive, in the order in which they came. */
  sources(): SnapshotSource[];
}

/** A registry of one's own, for tests or for two services in one process. */
export function createRegistry(): Registry {
  const members = new Set<WeakRef<SnapshotSource>>();
  const refs = new WeakMap<SnapshotSource, WeakRef<SnapshotSource>>();
  const gone = new FinalizationRegistry<WeakRef<SnapshotSource>>((ref) => members.delete(ref));
  return {
    add(source) {
      if (refs.has(source)) return;
      const ref = new WeakRef(source);
      refs.set(source, ref);
      members.add(ref);
      gone.register(source, ref, ref);
    },
    remove(source) {
      const ref = refs.get(source);
      if (ref === undefined) return;
      refs.delete(source);
      members.delete(ref);
      gone.unregister(ref);
    },
    sources() {
      const alive: SnapshotSource[] = [];
      for (const ref of members) {
        const source = ref.deref();
        if (source !== undefined) alive.push(source);
      }
      return alive;
    },
  };
}

const PROCESS_WIDE = Symbol.for('@elimit/core/registry');

/** The registry that everything joins unless told otherwise; one per process, also with two copies of the package. */
export function processRegistry(): Registry {
  const scope = globalThis as { [PROCESS_WIDE]?: Registry };
  scope[PROCESS_WIDE] ??= createRegistry();
  return scope[PROCESS_WIDE];
}
