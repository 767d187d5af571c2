import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Timers } from '@elimit/core';
import { functionOf, having, show, systemClock, systemTimers } from '@elimit/core';

/** How and when a slot comes back. Times are in milliseconds, fractions included; `Infinity` turns a rule off. */
export interface EndingOptions<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> {
  /**
   * A piped answer whose client does not read gives its slot back after this long; at least 1. @default 1000
   */
  readonly drainHoldMs?: number | undefined;
  /**
   * A handler that has not ended this long after its client left gives its slot back.
   * `'auto'` is twice the guard's mean latency, at most 5000; a number is at least 0. @default 'auto'
   */
  readonly abandonedHoldMs?: number | 'auto' | undefined;
  /** Any other call gives its slot back after this long, as a failure; at least 1. @default Infinity */
  readonly maxHoldMs?: number | undefined;
  /** Calls whose body may still be coming at once. `'auto'` is half of the limit, at least 4, but one less than the limit; a number is at least 1. @default 'auto' */
  readonly maxBodies?: number | 'auto' | undefined;
  /** A handler that has waited this long in all for its request's body: the client gets a 408; at least 1. @default 10000 */
  readonly bodyHoldMs?: number | undefined;
  /** Event streams and upgrades that may run at once, outside the limiter; one more is cut off, and counts as rejected; at least 0. @default 1000 */
  readonly maxStreams?: number | undefined;
  /** What counts as a failure of ours. @default a status of 500 and above */
  readonly isFailure?: ((req: Req, res: Res) => boolean) | undefined;
  /** @default the process's monotonic clock */
  readonly clock?: Clock | undefined;
  /** @default the process's timers, which keep no process alive */
  readonly timers?: Timers | undefined;
}

export type ResolvedEndingOptions = {
  readonly [Key in keyof EndingOptions]-?: Exclude<EndingOptions[Key], undefined>;
};

export const ENDING_DEFAULTS: ResolvedEndingOptions = {
  drainHoldMs: 1000,
  abandonedHoldMs: 'auto',
  maxHoldMs: Number.POSITIVE_INFINITY,
  maxBodies: 'auto',
  bodyHoldMs: 10_000,
  maxStreams: 1000,
  isFailure: (_req, res) => res.statusCode >= 500,
  clock: systemClock,
  timers: systemTimers,
};

/** Fills in defaults and refuses bad values; other keys are left to whoever owns them. */
export function resolveEndingOptions(of: string, options: EndingOptions): ResolvedEndingOptions {
  const pick = <Key extends keyof EndingOptions>(key: Key): ResolvedEndingOptions[Key] =>
    (options[key] ?? ENDING_DEFAULTS[key]) as ResolvedEndingOptions[Key];
  return {
    drainHoldMs: amount(of, 'drainHoldMs', pick('drainHoldMs'), 1),
    abandonedHoldMs: orAuto(of, 'abandonedHoldMs', pick('abandonedHoldMs'), 0),
    maxHoldMs: amount(of, 'maxHoldMs', pick('maxHoldMs'), 1),
    maxBodies: orAuto(of, 'maxBodies', pick('maxBodies'), 1),
    bodyHoldMs: amount(of, 'bodyHoldMs', pick('bodyHoldMs'), 1),
    maxStreams: amount(of, 'maxStreams', pick('maxStreams'), 0),
    isFailure: functionOf(`${of}.isFailure`, pick('isFailure')),
    clock: having(`${of}.clock`, pick('clock'), ['nowUs']),
    timers: having(`${of}.timers`, pick('timers'), ['setTimeout', 'clearTimeout']),
  };
}

/** A number from `min` on; `Infinity` turns the rule off. */
function amount(of: string, name: string, value: unknown, min: number, or = ''): number {
  const wanted = `${of}.${name} must be ${or}a number of at least ${min}, got ${show(value)}`;
  if (typeof value !== 'number') throw new TypeError(wanted);
  // written so that NaN fails too
  if (!(value >= min)) throw new RangeError(wanted);
  return value;
}

function orAuto(of: string, name: string, value: unknown, min: number): number | 'auto' {
  return value === 'auto' ? value : amount(of, name, value, min, "'auto' or ");
}
