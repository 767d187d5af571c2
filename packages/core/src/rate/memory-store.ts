import type { BucketLaw } from './law.js';
import type { RateQuota } from './store.js';

/** Where `tokens` of a bucket live: an index into the store's cells. */
export type Slot = number;

const FIRST_SLOTS = 16;
/** Full buckets are kept this long: keys that are used all the time are not dropped and made anew between two calls. */
const LINGER_US = 1_000_000;
/** Slots looked at for each newcomer: enough to free more than comes in. */
const SWEEP = 4;
/** Longer keys are counted by a hash of 64 bits: a key is a name, not a place to keep things. */
const LONGEST_KEY = 256;
/** Candidates among which the fullest bucket is given up when the store is full. */
const CANDIDATES = 8;

/**
 * Buckets by key, in bounded memory and without a timer.
 *
 * All numbers lie in one array and the key's slot in one map, about 100 bytes a key beside its text.
 * A bucket that has been as new for a second holds nothing worth keeping and is dropped as newcomers
 * come by; when nobody has owed anything for a second, all of it is let go at once.
 *
 * When `maxKeys` are in use, the fullest of eight buckets is given up, and what it owed goes into the
 * memory's shadow: twice `maxKeys` places of 12 bytes, without the key's text. A key that comes back
 * owes what it owed, so eviction does **not** unblock a blocked key. Only when more than three times
 * `maxKeys` keys owe something at once are debts forgotten, the smallest ones first.
 */
export class MemoryStore {
  // set once
  readonly #law: BucketLaw;
  readonly #maxKeys: number;
  readonly #seed: number;
  // moves when keys come and go
  readonly #slots = new Map<string, Slot>();
  #keys: (string | undefined)[] = [];
  #cells: Float64Array;
  #free: Slot[] = [];
  #used = 0;
  #hand = 0;
  /** The last grant: all buckets are fresh once the law's longest time has passed since... */
  #takenUs = 0;
  /** ...and these, which may owe more than a burst. `Infinity` while the law cannot tell. */
  #freshAtUs = 0;
  #shadow: Shadow | undefined;

  /** @param seed - 32 bits of chance, so that nobody outside can aim at one place of the shadow */
  constructor(law: BucketLaw, maxKeys: number, seed: number) {
    this.#law = law;
    this.#maxKeys = maxKeys;
    this.#seed = seed >>> 0;
    this.#cells = new Float64Array(Math.min(FIRST_SLOTS, maxKeys) * law.width);
  }

  /** Keys held. */
  get size(): number {
    return this.#slots.size;
  }

  /** The key's bucket, made if it is new. Good until the next `find`. */
  find(key: string, nowUs: number): Slot {
    const id = key.length > LONGEST_KEY ? shortened(key, this.#seed) : key;
    return this.#slots.get(id) ?? this.#newcomer(id, nowUs);
  }

  /** 0 if taken, else microseconds to wait; see {@link BucketLaw.take}. */
  takeAt(at: Slot, n: number, nowUs: number): number {
    const waitUs = this.#law.take(this.#cells, at, n, nowUs);
    if (waitUs === 0) this.#takenUs = nowUs;
    return waitUs;
  }

  waitAt(at: Slot, n: number, nowUs: number): number {
    return this.#law.waitUs(this.#cells, at, n, nowUs);
  }

  reserveAt(at: Slot, n: number, nowUs: number): number {
    const waitUs = this.#law.reserve(this.#cells, at, n, nowUs);
    this.#owing(at);
    return waitUs;
  }

  refundAt(at: Slot, n: number, nowUs: number): void {
    this.#law.refund(this.#cells, at, n, nowUs);
  }

  tokensAt(at: Slot, nowUs: number): number {
    return this.#law.tokens(this.#cells, at, nowUs);
  }

  paidAtUs(at: Slot): number {
    return this.#law.paidAtUs(this.#cells, at);
  }

  /** Forgets what a key has taken: its bucket is new. */
  reset(key: string, nowUs: number): void {
    this.#law.reset(this.#cells, this.find(key, nowUs), nowUs); // found, its debt is recalled
  }

  /** Changes rate and burst for every key: linear in their number, some 10 ns each. */
  retune(rate: number, burst: number, nowUs: number): void {
    const before = { rate: this.#law.rate, burst: this.#law.burst };
    this.#law.retune(this.#cells, rate, burst, nowUs);
    this.#shadow?.retune(before, this.#law, nowUs);
    this.#freshAtUs = 0;
    for (const at of this.#slots.values()) this.#owing(at);
  }

  /** Lets go of what nobody owes anything in; cheap, called by whoever looks from time to time. */
  prune(nowUs: number): void {
    if (this.#slots.size === 0) return;
    const freshAtUs = Math.max(this.#freshAtUs, this.#takenUs + this.#law.freshWithinUs);
    if (nowUs >= freshAtUs + LINGER_US) this.#clear();
  }

  #newcomer(key: string, nowUs: number): Slot {
    this.prune(nowUs);
    this.#sweep(nowUs);
    if (this.#slots.size >= this.#maxKeys) this.#evict(nowUs);
    const at = this.#free.pop() ?? this.#next();
    this.#keys[at / this.#law.width] = key;
    this.#slots.set(key, at);
    this.#law.reset(this.#cells, at, nowUs);
    const paidAtUs = this.#shadow?.recall(key) ?? 0;
    if (paidAtUs > nowUs) this.#law.resume(this.#cells, at, paidAtUs, nowUs);
    this.#owing(at);
    return at;
  }

  #owing(at: Slot): void {
    const freshAtUs = this.#law.freshAtUs(this.#cells, at);
    if (freshAtUs > this.#freshAtUs) this.#freshAtUs = freshAtUs;
  }

  #next(): Slot {
    const at = this.#used;
    this.#used += this.#law.width;
    if (this.#used > this.#cells.length) {
      const most = this.#maxKeys * this.#law.width;
      const grown = new Float64Array(Math.min(most, this.#cells.length * 2));
      grown.set(this.#cells);
      this.#cells = grown;
    }
    return at;
  }

  #clear(): void {
    this.#slots.clear();
    this.#keys = [];
    this.#free = [];
    this.#used = this.#hand = 0;
    this.#freshAtUs = 0;
    this.#cells = new Float64Array(Math.min(FIRST_SLOTS, this.#maxKeys) * this.#law.width);
    this.#shadow = undefined; // every place in it was fresh no later than a bucket's end
  }

  #drop(at: Slot): void {
    const index = at / this.#law.width;
    this.#slots.delete(this.#keys[index] as string);
    this.#keys[index] = undefined;
    this.#free.push(at);
  }

  #step(): Slot {
    const at = this.#hand;
    this.#hand += this.#law.width;
    if (this.#hand >= this.#used) this.#hand = 0;
    return at;
  }

  #sweep(nowUs: number): void {
    const steps = Math.min(SWEEP, this.#slots.size);
    for (let i = 0; i < steps; i++) {
      const at = this.#step();
      if (this.#keys[at / this.#law.width] === undefined) continue;
      if (this.#law.freshAtUs(this.#cells, at) + LINGER_US <= nowUs) this.#drop(at);
    }
  }

  #evict(nowUs: number): void {
    let fullest = this.#step();
    let leastUs = this.#law.paidAtUs(this.#cells, fullest);
    for (let i = 1; i < CANDIDATES; i++) {
      const at = this.#step();
      const paidAtUs = this.#law.paidAtUs(this.#cells, at);
      if (paidAtUs < leastUs) {
        fullest = at;
        leastUs = paidAtUs;
      }
    }
    if (leastUs > nowUs) {
      this.#shadow ??= new Shadow(2 * this.#maxKeys, this.#seed);
      this.#shadow.remember(this.#keys[fullest / this.#law.width] as string, leastUs);
    }
    this.#drop(fullest);
  }
}

function shortened(key: string, seed: number): string {
  return `#${key.length}:${hashText(key, seed)}`;
}

/** Places that share one hash: the key's debt may lie in any of them. */
const WAYS = 8;

/** Debts of keys that were given up: until when each is paid for, by a fingerprint of 32 bits. */
class Shadow {
  readonly #seed: number;
  readonly #sets: number;
  readonly #prints: Uint32Array;
  readonly #paidAtUs: Float64Array;

  constructor(places: number, seed: number) {
    this.#seed = seed;
    this.#sets = Math.ceil(places / WAYS);
    this.#prints = new Uint32Array(this.#sets * WAYS);
    this.#paidAtUs = new Float64Array(this.#sets * WAYS);
  }

  /** Keeps a debt, in place of the one of its set that is paid first if that is sooner. */
  remember(key: string, paidAtUs: number): void {
    const from = this.#setOf(key);
    let soonest = from;
    for (let i = from; i < from + WAYS; i++) {
      if ((this.#paidAtUs[i] as number) < (this.#paidAtUs[soonest] as number)) soonest = i;
    }
    if ((this.#paidAtUs[soonest] as number) >= paidAtUs) return;
    this.#prints[soonest] = this.#printOf(key);
    this.#paidAtUs[soonest] = paidAtUs;
  }

  /** When the key's debt is paid, 0 if none is known; it is the caller's to keep from here on. */
  recall(key: string): number {
    const from = this.#setOf(key);
    const print = this.#printOf(key);
    for (let i = from; i < from + WAYS; i++) {
      const paidAtUs = this.#paidAtUs[i] as number;
      if (paidAtUs === 0 || this.#prints[i] !== print) continue;
      this.#paidAtUs[i] = 0;
      return paidAtUs;
    }
    return 0;
  }

  /** What was missing stays missing; a larger burst mints nothing, a smaller one forgives. */
  retune(before: RateQuota, now: RateQuota, nowUs: number): void {
    for (let i = 0; i < this.#paidAtUs.length; i++) {
      const leftUs = (this.#paidAtUs[i] as number) - nowUs;
      if (leftUs <= 0) continue;
      // where the rate was 0 the time says nothing: it had taken something, so it has nothing
      const known = leftUs < Number.POSITIVE_INFINITY;
      const missing = known ? (leftUs * before.rate) / 1e6 + now.burst - before.burst : now.burst;
      this.#paidAtUs[i] = missing > 0 ? nowUs + (missing * 1e6) / now.rate : 0;
    }
  }

  #setOf(key: string): number {
    return (hash(key, this.#seed) % this.#sets) * WAYS;
  }

  #printOf(key: string): number {
    return hash(key, ~this.#seed);
  }
}

const { imul } = Math;

/** Murmur3's mixing over the code units; 32 bits, not for secrets. */
function hash(text: string, seed: number): number {
  let h = seed | 0;
  for (let i = 0; i < text.length; i++) {
    h = imul(h ^ text.charCodeAt(i), 0xcc9e2d51);
    h = (h << 13) | (h >>> 19);
    h = (imul(h, 5) + 0xe6546b64) | 0;
  }
  h ^= text.length;
  h = imul(h ^ (h >>> 16), 0x85ebca6b);
  h = imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** 64 bits of hash, in hexadecimal. */
export function hashText(text: string, seed: number): string {
  const half = (of: number): string => hash(text, of).toString(16).padStart(8, '0');
  return half(~seed) + half(seed);
}
