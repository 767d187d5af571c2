import {
  type Registry,
  readSources,
  type Snapshot,
  type SnapshotSource,
  type SourceReading,
  snapshotOf,
  type TimerHandle,
  type Timers,
} from '@elimit/core';

/** How much is kept: five minutes, a sample a second. */
export const SAMPLES = 300;
const PERIOD_MS = 1000;
/** Sources that are followed at most, guards first; more are read when a page is asked for, without a drawing. */
const MOST_SOURCES = 200;

/** The figures of a source that are drawn over time, oldest first. */
export interface Series {
  readonly limit: readonly number[];
  readonly inflight: readonly number[];
  /** Refusals per second. */
  readonly refused: readonly number[];
  /** Asked per second, refusals included. */
  readonly offered: readonly number[];
}

/** A source as it stands now, and how it got there. */
export interface Reading extends SourceReading {
  readonly series: Series | undefined;
}

interface Track {
  readonly limit: number[];
  readonly inflight: number[];
  readonly refused: number[];
  readonly offered: number[];
  lastRefused: number;
  lastOffered: number;
}

/** Follows a registry, once a second, with an unref'd timer. */
export class Sampler {
  readonly #registry: Registry;
  readonly #timers: Timers;
  readonly #types = new WeakMap<SnapshotSource, Snapshot['type']>();
  readonly #tracks = new WeakMap<SnapshotSource, Track>();
  readonly #onTick = new Set<() => void>();
  #timer: TimerHandle;

  constructor(registry: Registry, timers: Timers) {
    this.#registry = registry;
    this.#timers = timers;
    this.#tick();
  }

  /** Everything that is alive, read now. */
  read(): Reading[] {
    return readSources(this.#registry).map((reading) => ({
      ...reading,
      series: this.#tracks.get(reading.source),
    }));
  }

  /** Calls back after each sample; gives the function that ends it. */
  onTick(listener: () => void): () => void {
    this.#onTick.add(listener);
    return () => this.#onTick.delete(listener);
  }

  close(): void {
    this.#timers.clearTimeout(this.#timer);
    this.#onTick.clear();
  }

  #tick(): void {
    this.#timer = this.#timers.setTimeout(() => this.#tick(), PERIOD_MS);
    const guards: SnapshotSource[] = [];
    const others: SnapshotSource[] = [];
    for (const source of this.#registry.sources()) {
      (this.#isGuard(source) ? guards : others).push(source);
    }
    for (const source of [...guards, ...others].slice(0, MOST_SOURCES)) this.#sample(source);
    for (const listener of this.#onTick) listener();
  }

  /** Guards are what `/overloaded` asks after. A snapshot costs some: what has told its type once is not asked again. */
  #isGuard(source: SnapshotSource): boolean {
    const type = this.#types.get(source) ?? snapshotOf(source)?.type;
    if (type !== undefined) this.#types.set(source, type);
    return type === 'guard';
  }

  #sample(source: SnapshotSource): void {
    const snapshot = snapshotOf(source);
    if (snapshot === undefined) return;
    const figures = figuresOf(snapshot);
    let track = this.#tracks.get(source);
    if (track === undefined) {
      track = {
        limit: [],
        inflight: [],
        refused: [],
        offered: [],
        lastRefused: figures.refused,
        lastOffered: figures.offered,
      };
      this.#tracks.set(source, track);
    }
    push(track.limit, figures.limit);
    push(track.inflight, figures.inflight);
    push(track.refused, figures.refused - track.lastRefused);
    push(track.offered, figures.offered - track.lastOffered);
    track.lastRefused = figures.refused;
    track.lastOffered = figures.offered;
  }
}

function push(series: number[], value: number): void {
  if (series.length === SAMPLES) series.shift();
  series.push(value);
}

interface Figures {
  readonly limit: number;
  readonly inflight: number;
  readonly refused: number;
  readonly offered: number;
}

function figuresOf(snapshot: Snapshot): Figures {
  switch (snapshot.type) {
    case 'guard': {
      const refused = Object.values(snapshot.rejected).reduce((sum, each) => sum + each, 0);
      const offered = snapshot.admitted - snapshot.revoked + refused;
      return { limit: snapshot.maxConcurrency, inflight: snapshot.inflight, refused, offered };
    }
    case 'rateLimiter':
      return {
        limit: snapshot.burst,
        inflight: Math.max(0, snapshot.tokens),
        refused: snapshot.rejected,
        offered: snapshot.granted + snapshot.rejected,
      };
    case 'breaker': {
      const { success, failure, ignored, abandoned } = snapshot.outcomes;
      const ended = success + failure + ignored + abandoned;
      return {
        limit: 1,
        inflight: snapshot.rampRatio,
        refused: snapshot.rejected,
        offered: ended + snapshot.rejected,
      };
    }
    case 'endpoint':
      return {
        limit: Infinity,
        inflight: snapshot.inflight,
        refused: snapshot.refusals,
        offered: snapshot.calls,
      };
  }
}

/** Share of what was asked that was refused over the last `seconds`, 0 while nothing was asked. */
export function refusedShare(series: Series | undefined, seconds: number): number {
  if (series === undefined) return 0;
  const sum = (values: readonly number[]): number =>
    values.slice(-seconds).reduce((total, value) => total + value, 0);
  const offered = sum(series.offered);
  return offered === 0 ? 0 : sum(series.refused) / offered;
}
