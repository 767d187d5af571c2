import { type OnEvent, quiet } from '../events.js';
import type { FlagSnapshot } from '../metrics/snapshot.js';
import { numberIn, show } from '../options.js';
import { hashText } from '../rate/memory-store.js';
import { RATE_LIMITER_DEFAULTS, type ResolvedRateOptions } from './rate-options.js';

/** An event at most this often for refusals. */
const TELL_EVERY_US = 1_000_000;

const LIVE = new Set(['rate', 'burst', 'dryRun', 'storePolicy', 'storeTimeoutMs']);

// The next two stand in every call, and what is small V8 puts in line: their complaints are made elsewhere.

/** The cost of a call, if it is a finite number of at least 0; anything else throws and takes nothing. */
export function costOf(n: number): number {
  if (typeof n === 'number' && n >= 0 && n < Infinity) return n;
  return numberIn('n', n, 0, Number.MAX_VALUE);
}

/** The key, if it is a string; anything else throws. */
export function keyOf(key: string): string {
  return typeof key === 'string' ? key : noKey(key);
}

function noKey(key: unknown): never {
  throw new TypeError(`key must be a string, got ${show(key)}`);
}

/** Counts what a rate limiter decides, and tells about it: what both of its forms do alike. */
export class RateBook {
  readonly name: string;
  readonly seed: number;
  granted = 0;
  rejected = 0;
  wouldReject = 0;
  dryRun: boolean;
  readonly #revealKeys: boolean;
  readonly #onEvent: OnEvent | undefined;
  readonly #warned = new Set<string>();
  #untold = 0;
  #tellFromUs = Number.NEGATIVE_INFINITY;

  constructor(options: ResolvedRateOptions) {
    this.name = options.name;
    this.dryRun = options.dryRun;
    this.#revealKeys = options.revealKeys;
    this.#onEvent = quiet(options.onEvent);
    // keys are hashed with a seed of this limiter, so that nobody outside can aim at a collision
    this.seed = Math.floor(options.random() * 2 ** 32);
  }

  /** Counts a refusal; true if a dry run lets it through. */
  refused(key: string | undefined, nowUs: number): boolean {
    if (this.dryRun) this.wouldReject++;
    else this.rejected++;
    if (this.#onEvent !== undefined) this.#tell(key, nowUs, this.#onEvent);
    return this.dryRun;
  }

  mode(from: string, to: string, cause: string): void {
    this.#onEvent?.({ type: 'mode', name: this.name, from, to, cause });
  }

  configured(changed: Readonly<Record<string, unknown>>): void {
    this.#onEvent?.({ type: 'configure', name: this.name, changed: { ...changed } });
  }

  /** Once for each code. */
  warn(code: string, message: string): void {
    if (this.#warned.has(code)) return;
    this.#warned.add(code);
    this.#onEvent?.({ type: 'warning', code, name: this.name, message });
  }

  flags(values: Readonly<Record<string, unknown>>): FlagSnapshot[] {
    return Object.entries(values).map(([name, value]) => ({
      name,
      value,
      default: (RATE_LIMITER_DEFAULTS as Record<string, unknown>)[name],
      live: LIVE.has(name),
    }));
  }

  #tell(key: string | undefined, nowUs: number, onEvent: OnEvent): void {
    this.#untold++;
    if (nowUs < this.#tellFromUs) return;
    const count = this.#untold;
    this.#untold = 0;
    this.#tellFromUs = nowUs + TELL_EVERY_US;
    const shown = key === undefined || this.#revealKeys ? key : hashText(key, this.seed);
    onEvent({
      type: 'reject',
      name: this.name,
      reason: 'rate',
      count,
      ...(shown !== undefined && { key: shown }),
    });
  }
}
