import type { LatencySnapshot } from './snapshot.js';

/** Each power of two is cut into this many equal buckets. */
const PER_OCTAVE = 32;
const PER_OCTAVE_BITS = 5;
/** Values below 64 us have a bucket each; then 26 octaves, up to 2^32 us (71 minutes). */
const BUCKETS = PER_OCTAVE * (32 - PER_OCTAVE_BITS + 1);
const LARGEST_US = 2 ** 32 - 1;
const SLICES = 3;
const SLICE_US = 20_000_000;

/**
 * The most a percentile can be off, as a ratio of the true value: half a bucket, which is as wide
 * as 1/32 of its lower edge. `meanUs`, `maxUs` and `count` are exact.
 */
export const LATENCY_RELATIVE_ERROR = 1 / (2 * PER_OCTAVE);

/** Where a whole number of microseconds, 0 to 2^32 - 1, is counted. */
export function bucketOf(us: number): number {
  if (us < PER_OCTAVE) return us;
  const shift = 31 - PER_OCTAVE_BITS - Math.clz32(us);
  return shift * PER_OCTAVE + (us >>> shift);
}

/** The middle of a bucket, in microseconds. */
export function middleOf(bucket: number): number {
  if (bucket < 2 * PER_OCTAVE) return bucket;
  const shift = Math.floor(bucket / PER_OCTAVE) - 1;
  const low = (bucket - shift * PER_OCTAVE) * 2 ** shift;
  return low + 2 ** (shift - 1);
}

interface Slice {
  readonly counts: Uint32Array;
  sumUs: number;
  maxUs: number;
}

/**
 * Latencies of the last 40 to 60 seconds in fixed memory: three slices of 20 s of a log-linear
 * histogram, about 11 KB, and nothing before the first latency.
 */
export class LatencyHistogram {
  readonly #slices: Slice[] = [];
  #current: Slice | undefined;
  /** The number of 20-second slices that had begun by the last roll. */
  #sliceNumber = -1;

  /** Counts a latency. `roll` has been called for this moment. */
  add(latencyUs: number): void {
    this.#current ??= this.#slice(Math.max(0, this.#sliceNumber));
    const slice = this.#current;
    const bucket = bucketOf(Math.min(latencyUs, LARGEST_US));
    slice.counts[bucket] = (slice.counts[bucket] as number) + 1;
    slice.sumUs += latencyUs;
    if (latencyUs > slice.maxUs) slice.maxUs = latencyUs;
  }

  /** Moves on to `nowUs`: slices that are too old are emptied, over all the time that has passed. */
  roll(nowUs: number): void {
    const number = Math.floor(nowUs / SLICE_US);
    if (number === this.#sliceNumber) return;
    const stale = Math.min(SLICES, number - this.#sliceNumber);
    for (let back = 0; back < stale; back++) {
      const slice = this.#slices[mod(number - back)];
      if (slice !== undefined) empty(slice);
    }
    this.#sliceNumber = number;
    if (this.#current !== undefined) this.#current = this.#slice(number);
  }

  snapshot(nowUs: number): LatencySnapshot {
    this.roll(nowUs);
    const counts = new Float64Array(BUCKETS);
    let count = 0;
    let sumUs = 0;
    let maxUs = 0;
    for (const slice of this.#slices) {
      sumUs += slice.sumUs;
      maxUs = Math.max(maxUs, slice.maxUs);
      for (let i = 0; i < BUCKETS; i++) {
        const ofSlice = slice.counts[i] as number;
        counts[i] = (counts[i] as number) + ofSlice;
        count += ofSlice;
      }
    }
    const at = (ratio: number): number => Math.min(maxUs, percentile(counts, count, ratio));
    return {
      count,
      meanUs: count === 0 ? 0 : sumUs / count,
      p50Us: at(0.5),
      p90Us: at(0.9),
      p99Us: at(0.99),
      p999Us: at(0.999),
      maxUs,
    };
  }

  #slice(number: number): Slice {
    // all three at once, so that the array has no holes
    while (this.#slices.length < SLICES) {
      this.#slices.push({ counts: new Uint32Array(BUCKETS), sumUs: 0, maxUs: 0 });
    }
    return this.#slices[mod(number)] as Slice;
  }
}

function mod(number: number): number {
  return ((number % SLICES) + SLICES) % SLICES;
}

function empty(slice: Slice): void {
  slice.counts.fill(0);
  slice.sumUs = 0;
  slice.maxUs = 0;
}

/** Nearest rank: the smallest value that at least `ratio` of the values do not exceed. */
function percentile(counts: Float64Array, count: number, ratio: number): number {
  if (count === 0) return 0;
  let left = Math.max(1, Math.ceil(ratio * count));
  for (let i = 0; i < BUCKETS; i++) {
    left -= counts[i] as number;
    if (left <= 0) return middleOf(i);
  }
  return LARGEST_US;
}
