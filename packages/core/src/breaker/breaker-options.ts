import {
  changeByRules,
  decimal,
  fixed,
  integer,
  live,
  type OptionRules,
  refuseForeign,
  resolveByRules,
} from '../option-rules.js';
import { numberIn } from '../options.js';

/** Numbers of the default grade. Every one can be changed while running. */
export interface ErrorCostOptions {
  /** Calls the short window remembers. It notices that everything fails. 1 to 1 000 000. @default 8 */
  readonly shortWindowSize?: number | undefined;
  /** Calls the long window remembers. It notices that too large a share fails. 1 to 1 000 000. @default 800 */
  readonly longWindowSize?: number | undefined;
  /** Share of failures the short window tolerates, 0 to 1. @default 0.5 */
  readonly shortWindowErrorRatio?: number | undefined;
  /** Share of failures the long window tolerates, 0 to 1. @default 0.05 */
  readonly longWindowErrorRatio?: number | undefined;
  /** In the long window a failure costs at least this many average latencies, however fast it was. 1 to 100. @default 1.5 */
  readonly minFailedLatencyMultiple?: number | undefined;
  /** In the long window a slow failure costs at most this many average latencies. `minFailedLatencyMultiple` to 100. @default 2 */
  readonly maxFailedLatencyMultiple?: number | undefined;
  /** Share of the cost that a whole window of successes leaves, above 0 and below 1. @default 0.02 */
  readonly epsilon?: number | undefined;
  /** Half of the cost is forgotten in this time, in milliseconds, 1 to 86 400 000. @default 30000 */
  readonly costHalfLifeMs?: number | undefined;
  /**
   * Fellows that have failed for no longer than this excuse a failure: a fault of all is nobody's own. One that
   * lasts longer is. In milliseconds, 0 (nobody is excused) to 86 400 000; only where there is a cluster. @default 1000
   */
  readonly commonFaultMs?: number | undefined;
  /** Calls (faded like the cost) below which errors open nothing. 1 to 1 000 000. @default 5 */
  readonly minCalls?: number | undefined;
  /** Shortest isolation, in milliseconds, 1 to 86 400 000. @default 100 */
  readonly minIsolationMs?: number | undefined;
  /** Longest isolation, in milliseconds, `minIsolationMs` to 86 400 000. @default 4000 */
  readonly maxIsolationMs?: number | undefined;
  /**
   * A relapse doubles the isolation; good time of this length, in milliseconds, 0 to 86 400 000, halves it again.
   * In a cluster it also asks for one more failure in a row before the next isolation. @default 20000
   */
  readonly relapseMs?: number | undefined;
  /** How far chance moves an isolation's length within its bounds, 0 to 1. @default 0.2 */
  readonly isolationJitterRatio?: number | undefined;
  /** Good trial calls in a row that end half-open; 0 skips half-open. 0 to 1000. @default 3 */
  readonly halfOpenWindowSize?: number | undefined;
  /** Time after which a trial call counts as failed, in milliseconds, 1 to 86 400 000. @default 5000 */
  readonly trialTimeoutMs?: number | undefined;
  /**
   * After half-open the share of calls let through grows from a tenth to all of them in this time, or in
   * the length of the isolation if that was shorter; in milliseconds, 0 (all at once) to 86 400 000. @default 1000
   */
  readonly rampMs?: number | undefined;
}

/** Numbers of the strict grade: brpc's own. Window sizes and shares are fixed at construction, the rest can be changed. */
export interface StrictBreakerOptions {
  /** Calls in the short window, 1 to 1 000 000. @default 1500 */
  readonly shortWindowSize?: number | undefined;
  /** Calls in the long window, 1 to 1 000 000. @default 3000 */
  readonly longWindowSize?: number | undefined;
  /** Share of failures the short window tolerates, 0 to 1, in whole percents. @default 0.1 */
  readonly shortWindowErrorRatio?: number | undefined;
  /** Share of failures the long window tolerates, 0 to 1, in whole percents. @default 0.05 */
  readonly longWindowErrorRatio?: number | undefined;
  /** Cost below this becomes 0 with the next success, in milliseconds, down to whole microseconds. @default 0.5 */
  readonly minErrorCostMs?: number | undefined;
  /** One failure costs at most this many average latencies; a whole number, 1 to 1000. @default 2 */
  readonly maxFailedLatencyMultiple?: number | undefined;
  /** Shortest isolation, in whole milliseconds, 1 to 86 400 000. @default 100 */
  readonly minIsolationMs?: number | undefined;
  /** Longest isolation, in whole milliseconds, `minIsolationMs` to 86 400 000. @default 30000 */
  readonly maxIsolationMs?: number | undefined;
  /** Smoothing is `epsilon^(1/size)`; above 0 and below 1. @default 0.02 */
  readonly epsilon?: number | undefined;
  /** Successes after isolation that end half-open; 0 is off. 0 to 1 000 000. @default 0 */
  readonly halfOpenWindowSize?: number | undefined;
}

const DAY_MS = 86_400_000;

/** Options that may not cross. */
const PAIRS = [
  ['minIsolationMs', 'maxIsolationMs'],
  ['minFailedLatencyMultiple', 'maxFailedLatencyMultiple'],
] as const;

/** All numbers of a grade, none absent. */
export type Resolved<T> = { readonly [K in keyof T]-?: number };

/** Between 0 and 1 with neither of them: the smoothing would stand still or forget all. */
const inside = (name: string, value: unknown) => numberIn(name, value, 1e-9, 1 - 1e-9);

/** brpc's percents are whole; its ceilings follow from them. */
function wholePercent(name: string, value: unknown): number {
  const ratio = numberIn(name, value, 0, 1);
  if (Math.abs(ratio * 100 - Math.round(ratio * 100)) > 1e-9) {
    throw new RangeError(`${name} must be a whole percent in the strict grade, got ${ratio}`);
  }
  return ratio;
}

/** The default grade's options: default and check of each. */
export const ERROR_COST_RULES: OptionRules<Resolved<ErrorCostOptions>> = {
  shortWindowSize: live(8, integer(1, 1_000_000)),
  longWindowSize: live(800, integer(1, 1_000_000)),
  shortWindowErrorRatio: live(0.5, decimal(0, 1)),
  longWindowErrorRatio: live(0.05, decimal(0, 1)),
  minFailedLatencyMultiple: live(1.5, decimal(1, 100)),
  maxFailedLatencyMultiple: live(2, decimal(1, 100)),
  epsilon: live(0.02, inside),
  costHalfLifeMs: live(30_000, decimal(1, DAY_MS)),
  commonFaultMs: live(1000, decimal(0, DAY_MS)),
  minCalls: live(5, integer(1, 1_000_000)),
  minIsolationMs: live(100, decimal(1, DAY_MS)),
  maxIsolationMs: live(4000, decimal(1, DAY_MS)),
  relapseMs: live(20_000, decimal(0, DAY_MS)),
  isolationJitterRatio: live(0.2, decimal(0, 1)),
  halfOpenWindowSize: live(3, integer(0, 1000)),
  trialTimeoutMs: live(5000, decimal(1, DAY_MS)),
  rampMs: live(1000, decimal(0, DAY_MS)),
};

/** The strict grade's options. */
export const STRICT_BREAKER_RULES: OptionRules<Resolved<StrictBreakerOptions>> = {
  shortWindowSize: fixed(1500, integer(1, 1_000_000)),
  longWindowSize: fixed(3000, integer(1, 1_000_000)),
  shortWindowErrorRatio: fixed(0.1, wholePercent),
  longWindowErrorRatio: fixed(0.05, wholePercent),
  minErrorCostMs: live(0.5, decimal(0, DAY_MS)),
  maxFailedLatencyMultiple: live(2, integer(1, 1000)),
  minIsolationMs: live(100, integer(1, DAY_MS)),
  maxIsolationMs: live(30_000, integer(1, DAY_MS)),
  epsilon: live(0.02, inside),
  halfOpenWindowSize: live(0, integer(0, 1_000_000)),
};

/** The default grade's numbers, the absent ones at their defaults. Throws on unknown keys and bad values. */
export function resolveErrorCostOptions(
  options: ErrorCostOptions = {},
): Resolved<ErrorCostOptions> {
  refuseStrict(options);
  return uncrossed(resolveByRules('breaker', options, ERROR_COST_RULES));
}

/** The strict grade's numbers, the absent ones at their defaults. Throws on unknown keys and bad values. */
export function resolveStrictOptions(
  options: StrictBreakerOptions = {},
): Resolved<StrictBreakerOptions> {
  refuseDefault(options);
  return uncrossed(resolveByRules('breaker', options, STRICT_BREAKER_RULES));
}

/** The numbers after a change while running; throws for what is fixed, and then nothing has changed. */
export function changeErrorCostOptions(
  current: Resolved<ErrorCostOptions>,
  partial: ErrorCostOptions,
): Resolved<ErrorCostOptions> {
  refuseStrict(partial);
  return uncrossed(changeByRules('breaker', current, { ...partial }, ERROR_COST_RULES));
}

/** The same for the strict grade. */
export function changeStrictOptions(
  current: Resolved<StrictBreakerOptions>,
  partial: StrictBreakerOptions,
): Resolved<StrictBreakerOptions> {
  refuseDefault(partial);
  return uncrossed(changeByRules('breaker', current, { ...partial }, STRICT_BREAKER_RULES));
}

function refuseStrict(given: object): void {
  const belongsTo = 'belongs to the strict grade only: { strict: true }';
  refuseForeign('breaker', given, ERROR_COST_RULES, STRICT_BREAKER_RULES, belongsTo);
}

function refuseDefault(given: object): void {
  const belongsTo = 'belongs to the default grade only, not to { strict: true }';
  refuseForeign('breaker', given, STRICT_BREAKER_RULES, ERROR_COST_RULES, belongsTo);
}

/** The numbers, if no pair of them crosses; else a `RangeError`. */
function uncrossed<T extends object>(values: Resolved<T>): Resolved<T> {
  const numbers = values as Readonly<Record<string, number>>;
  for (const [least, most] of PAIRS) {
    const [min = 0, max = 0] = [numbers[least], numbers[most]];
    if (min > max) {
      throw new RangeError(
        `breaker.${most} must be at least breaker.${least} (${min}), got ${max}`,
      );
    }
  }
  return values;
}
