import { uniquelyNamed } from '../metrics/names.js';
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
  // no WeakMap from source to ref: each minor collection would walk all of it, and coming and going would be slow
  const members = new Set<WeakRef<SnapshotSource>>();
  const gone = new FinalizationRegistry<WeakRef<SnapshotSource>>((ref) => members.delete(ref));
  return {
    add(source) {
      const ref = new WeakRef(source);
      members.add(ref);
      gone.register(source, ref);
    },
    remove(source) {
      for (const ref of members) if (ref.deref() === source) members.delete(ref);
    },
    sources() {
      const alive = new Set<SnapshotSource>(); // one that was added twice is listed once
      for (const ref of members) {
        const source = ref.deref();
        if (source !== undefined) alive.add(source);
      }
      return [...alive];
    },
  };
}

/** A source as it stands, under a name that no other of its type has. */
export interface SourceReading {
  readonly name: string;
  readonly source: SnapshotSource;
  readonly snapshot: Snapshot;
}

/**
 * All that is alive, read now: what pages and collectors begin with. A source may be anybody's: one that throws is
 * left out, and takes nothing from the others.
 */
export function readSources(registry: Registry): SourceReading[] {
  const sources: SnapshotSource[] = [];
  const snapshots: Snapshot[] = [];
  for (const source of registry.sources()) {
    const snapshot = snapshotOf(source);
    if (snapshot === undefined) continue;
    snapshots.push(snapshot);
    sources.push(source);
  }
  return uniquelyNamed(snapshots).map(({ name, snapshot }, i) => ({
    name,
    source: sources[i] as SnapshotSource,
    snapshot,
  }));
}

/** How a source stands; `undefined` if it throws: it may be anybody's. */
export function snapshotOf(source: SnapshotSource): Snapshot | undefined {
  try {
    return source.snapshot();
  } catch {
    return undefined;
  }
}

const PROCESS_WIDE = Symbol.for('@elimit/core/registry');

/** The registry that everything joins unless told otherwise; one per process, also with two copies of the package. */
export function processRegistry(): Registry {
  const scope = globalThis as { [PROCESS_WIDE]?: Registry };
  scope[PROCESS_WIDE] ??= createRegistry();
  return scope[PROCESS_WIDE];
}
