import { type Clock, systemClock } from '../clock.js';
import type { OnEvent } from '../events.js';
import {
  booleanOf,
  functionOf,
  having,
  integerIn,
  knownKeys,
  numberIn,
  oneOf,
  textOf,
} from '../options.js';
import { type Random, systemRandom } from '../random.js';
import type { BucketLaw } from '../rate/law.js';
import type { RateQuota, RateStore } from '../rate/store.js';
import { TokenBucketLaw } from '../rate/token-bucket.js';
import { SmoothBurstyLaw, SmoothWarmUpLaw, WarmUpLaw } from '../rate/warm-up.js';
import { systemTimers, type Timers } from '../timers.js';
import { processRegistry, type Registry } from './registry.js';

/** What checks do while the store is down, slow or refusing. */
export type StorePolicy = 'local' | 'open' | 'closed';
const POLICIES = ['local', 'open', 'closed'] as const;

/** Options of `createRateLimiter`. Either `rate` and `burst`, or `limit` and `windowMs`. */
export interface RateLimiterOptions {
  /** Tokens per second, 1e-12 to 1e9, or 0, which stops the refill until `setRate`. */
  readonly rate?: number | undefined;
  /** The most tokens saved, 0 to 1e12; what a quiet caller may take at once. @default the rate, at least 1 */
  readonly burst?: number | undefined;
  /** With `windowMs`: the burst; and the rate is `limit` in a window. Whole, 0 to 1e12; 0 blocks all. */
  readonly limit?: number | undefined;
  /** 0.0001 (a tenth of a microsecond) to 366 days, in milliseconds. @default 60_000 where `limit` is given */
  readonly windowMs?: number | undefined;
  /** Time from cold to the full rate under full demand, in milliseconds: 0.0001 to one day, or 0 for none. @default 0 */
  readonly warmUpMs?: number | undefined;
  /** What a token costs when cold, in stable prices: 1 to 1000. @default 3 */
  readonly coldFactor?: number | undefined;
  /**
   * A larger burst, of at least `burst` and at most 1e12 tokens, for the first `forMs` milliseconds (0.0001 to one day)
   * of a fresh process; not with `warmUpMs`, `strict` or `store`. A burst that is set meanwhile ends it, and stands.
   */
  readonly startup?: { readonly burst: number; readonly forMs: number } | undefined;
  /** Guava's smooth limiter to the microsecond, its traps included. @default false */
  readonly strict?: boolean | undefined;
  /** The most keys held in memory; see `docs/rate-limits.md` for what happens beyond. 1 to 10 million. @default 100_000 */
  readonly maxKeys?: number | undefined;
  /** Where many processes count together; without it this process counts alone. */
  readonly store?: RateStore | undefined;
  /**
   * While the store is down: `local` counts here, with this process's share of the quota; `open` grants
   * all; `closed` refuses all. @default 'local'
   */
  readonly storePolicy?: StorePolicy | undefined;
  /** How long one check waits for the store, 1 to 60 000 ms. @default 50 */
  readonly storeTimeoutMs?: number | undefined;
  /** A looser limit of this process alone, asked before the store: `rate` and `burst` as above. Only with `store`. */
  readonly front?: { readonly rate: number; readonly burst: number } | undefined;
  /** Names it in snapshots, events and store keys; a must with `store`, where limits of one name share their tokens. @default 'rate' */
  readonly name?: string | undefined;
  /** Decides and counts, and lets everything through. @default false */
  readonly dryRun?: boolean | undefined;
  /** Puts keys into events as they are, instead of hashed. @default false */
  readonly revealKeys?: boolean | undefined;
  /** Hears refusals (at most one event a second), changes of mode and of options, and warnings. */
  readonly onEvent?: OnEvent | undefined;
  /** Tells the time. For tests. @default the process's monotonic clock */
  readonly clock?: Clock | undefined;
  /** Wakes those who wait in `take`, and bounds what a store takes. For tests. @default the process's, which keep no process alive */
  readonly timers?: Timers | undefined;
  /** Seeds the hash of keys, and spreads the questions to a store that is down. For tests. @default `Math.random` */
  readonly random?: Random | undefined;
  /** `false` joins none. @default the process's own */
  readonly registry?: Registry | false | undefined;
}

/** Defaults of {@link RateLimiterOptions}; `undefined` where an option is absent unless given. */
export const RATE_LIMITER_DEFAULTS = {
  rate: undefined,
  burst: undefined,
  limit: undefined,
  windowMs: 60_000,
  warmUpMs: 0,
  coldFactor: 3,
  startup: undefined,
  strict: false,
  maxKeys: 100_000,
  store: undefined,
  storePolicy: 'local',
  storeTimeoutMs: 50,
  front: undefined,
  name: 'rate',
  dryRun: false,
  revealKeys: false,
  onEvent: undefined,
  clock: systemClock,
  timers: systemTimers,
  random: systemRandom,
  registry: undefined,
} as const satisfies Record<keyof RateLimiterOptions, unknown>;

const MOST_TOKENS = 1e12;
const MOST_RATE = 1e9;
/** A token in thirty thousand years. Below, the time for a token is soon no number any more. */
const LEAST_RATE = 1e-12;
const DAY_MS = 86_400_000;
const LONGEST_WINDOW_MS = 366 * DAY_MS;
/** A tenth of a microsecond: shorter windows are a mistake in the unit. */
const SHORTEST_MS = 1e-4;

export interface ResolvedRateOptions extends RateQuota {
  readonly warmUpMs: number;
  readonly coldFactor: number;
  readonly startup: { readonly burst: number; readonly forMs: number } | undefined;
  readonly strict: boolean;
  readonly maxKeys: number;
  readonly store: RateStore | undefined;
  readonly storePolicy: StorePolicy;
  readonly storeTimeoutMs: number;
  readonly front: RateQuota | undefined;
  readonly name: string;
  readonly dryRun: boolean;
  readonly revealKeys: boolean;
  readonly onEvent: OnEvent | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly registry: Registry | undefined;
}

/** The value, if it is a rate: 0, or 1e-12 to 1e9 tokens per second. */
export function rateOf(name: string, value: unknown): number {
  return zeroOr(name, value, LEAST_RATE, MOST_RATE);
}

/** The value, if it is 0 or a number from `min` to `max`. */
function zeroOr(name: string, value: unknown, min: number, max: number): number {
  const number = numberIn(name, value, 0, max);
  if (number === 0 || number >= min) return number;
  throw new RangeError(`${name} must be 0 or a number from ${min} to ${max}, got ${number}`);
}

/** The value, if it is a burst: 0 to 1e12 tokens. */
export function burstOf(name: string, value: unknown): number {
  return numberIn(name, value, 0, MOST_TOKENS);
}

/** The value, if it is a window: 0.0001 ms to 366 days, in milliseconds. */
export function windowOf(name: string, value: unknown): number {
  return numberIn(name, value, SHORTEST_MS, LONGEST_WINDOW_MS);
}

/** Rate and burst out of either pair of options; `base` fills in what a partial change leaves out. */
export function resolveQuota(options: RateLimiterOptions, base?: RateQuota): RateQuota {
  const { rate, burst, limit, windowMs } = options;
  if (limit !== undefined) {
    if (rate !== undefined || burst !== undefined) {
      throw new TypeError(
        'rate.limit and rate.rate exclude each other: give limit and windowMs, or rate and burst',
      );
    }
    const tokens = integerIn('rate.limit', limit, 0, MOST_TOKENS);
    const forMs = windowMs ?? RATE_LIMITER_DEFAULTS.windowMs;
    const perMs = tokens / windowOf('rate.windowMs', forMs);
    return { rate: rateOf('rate.limit per second', perMs * 1000), burst: tokens };
  }
  if (windowMs !== undefined) throw new TypeError('rate.windowMs needs rate.limit beside it');
  if (rate === undefined && base === undefined) {
    throw new TypeError('rate.rate is missing: give rate (and burst), or limit and windowMs');
  }
  const perSecond = rate === undefined ? (base as RateQuota).rate : rateOf('rate.rate', rate);
  if (burst !== undefined) return { rate: perSecond, burst: burstOf('rate.burst', burst) };
  return { rate: perSecond, burst: base?.burst ?? Math.max(1, perSecond) };
}

function pairOf<K extends string>(
  of: string,
  value: unknown,
  keys: readonly K[],
): Record<K, unknown> {
  knownKeys(of, value, Object.fromEntries(keys.map((key) => [key, 0])));
  return value as Record<K, unknown>;
}

function resolveStartup(
  options: RateLimiterOptions,
  quota: RateQuota,
): ResolvedRateOptions['startup'] {
  if (options.startup === undefined) return undefined;
  if (options.warmUpMs !== undefined && options.warmUpMs !== 0) {
    throw new TypeError(
      'rate.startup and rate.warmUpMs exclude each other: one spares a fresh process, the other holds it back',
    );
  }
  const { burst, forMs } = pairOf('rate.startup', options.startup, ['burst', 'forMs']);
  return {
    burst: numberIn('rate.startup.burst', burst, quota.burst, MOST_TOKENS),
    forMs: numberIn('rate.startup.forMs', forMs, SHORTEST_MS, DAY_MS),
  };
}

function resolveFront(options: RateLimiterOptions): RateQuota | undefined {
  if (options.front === undefined) return undefined;
  if (options.store === undefined) throw new TypeError('rate.front needs rate.store behind it');
  const { rate, burst } = pairOf('rate.front', options.front, ['rate', 'burst']);
  return { rate: rateOf('rate.front.rate', rate), burst: burstOf('rate.front.burst', burst) };
}

/** The law that the options ask for, with nothing taken yet. */
export function lawOf(options: ResolvedRateOptions): BucketLaw {
  const { rate, burst, warmUpMs, coldFactor, strict } = options;
  const warmUpUs = warmUpMs * 1000;
  if (strict) {
    if (warmUpMs > 0) return new SmoothWarmUpLaw(rate, warmUpUs, coldFactor);
    return new SmoothBurstyLaw(rate, burst);
  }
  if (warmUpMs > 0) return new WarmUpLaw(rate, burst, warmUpUs, coldFactor);
  return new TokenBucketLaw(rate, burst);
}

export function resolveRateLimiterOptions(options: RateLimiterOptions): ResolvedRateOptions {
  knownKeys('rate', options, RATE_LIMITER_DEFAULTS);
  const d = RATE_LIMITER_DEFAULTS;
  const { onEvent, registry } = options;
  const quota = resolveQuota(options);
  const resolved: ResolvedRateOptions = {
    ...quota,
    warmUpMs: zeroOr('rate.warmUpMs', options.warmUpMs ?? d.warmUpMs, SHORTEST_MS, DAY_MS),
    coldFactor: numberIn('rate.coldFactor', options.coldFactor ?? d.coldFactor, 1, 1000),
    startup: resolveStartup(options, quota),
    strict: booleanOf('rate.strict', options.strict ?? d.strict),
    maxKeys: integerIn('rate.maxKeys', options.maxKeys ?? d.maxKeys, 1, 10_000_000),
    store: options.store,
    storePolicy: oneOf('rate.storePolicy', options.storePolicy ?? d.storePolicy, POLICIES),
    storeTimeoutMs: storeTimeoutOf(options.storeTimeoutMs ?? d.storeTimeoutMs),
    front: resolveFront(options),
    name: textOf('rate.name', options.name ?? d.name),
    dryRun: booleanOf('rate.dryRun', options.dryRun ?? d.dryRun),
    revealKeys: booleanOf('rate.revealKeys', options.revealKeys ?? d.revealKeys),
    onEvent: onEvent === undefined ? onEvent : functionOf('rate.onEvent', onEvent),
    clock: having('rate.clock', options.clock ?? d.clock, ['nowUs']),
    timers: having('rate.timers', options.timers ?? d.timers, ['setTimeout', 'clearTimeout']),
    random: functionOf('rate.random', options.random ?? d.random),
    registry:
      registry === false
        ? undefined
        : having('rate.registry', registry ?? processRegistry(), ['add', 'remove', 'sources']),
  };
  if (resolved.strict && quota.rate === 0) {
    throw new RangeError(
      'rate.rate must be more than 0 with rate.strict, got 0: Guava knows no stop',
    );
  }
  if (resolved.strict && resolved.startup !== undefined) {
    throw new TypeError('rate.startup is not known to rate.strict: leave strict out');
  }
  if (resolved.store !== undefined) {
    refuseWithStore(resolved);
    if (options.name === undefined) {
      throw new TypeError(
        "rate.name must be given with rate.store, got undefined: there, limits of one name share their keys' tokens",
      );
    }
  }
  return resolved;
}

function storeTimeoutOf(value: unknown): number {
  return numberIn('rate.storeTimeoutMs', value, 1, 60_000);
}

/** Live options as given to `configure`, checked; throws before anything has changed. */
export function resolveRateChange(
  partial: object,
  base: RateQuota,
): Partial<ResolvedRateOptions> & RateQuota {
  const live = {
    rate: 0,
    burst: 0,
    limit: 0,
    windowMs: 0,
    dryRun: 0,
    storePolicy: 0,
    storeTimeoutMs: 0,
  };
  knownKeys('rate.configure', partial, live);
  const { dryRun, storePolicy, storeTimeoutMs, ...quota } = partial as RateLimiterOptions;
  return {
    ...resolveQuota(quota, base),
    ...(dryRun !== undefined && { dryRun: booleanOf('rate.dryRun', dryRun) }),
    ...(storePolicy !== undefined && {
      storePolicy: oneOf('rate.storePolicy', storePolicy, POLICIES),
    }),
    ...(storeTimeoutMs !== undefined && { storeTimeoutMs: storeTimeoutOf(storeTimeoutMs) }),
  };
}

function refuseWithStore(options: ResolvedRateOptions): void {
  if (typeof options.store?.open !== 'function') {
    throw new TypeError(
      'rate.store must be a RateStore, such as redisStore(client) of @elimit/redis',
    );
  }
  const { warmUpMs, startup, strict } = options;
  const ofOneProcess = { warmUpMs: warmUpMs > 0, startup: startup !== undefined, strict };
  for (const [option, isSet] of Object.entries(ofOneProcess)) {
    if (isSet)
      throw new TypeError(`rate.${option} is of one process and does not go with rate.store`);
  }
}
