import { type FlagSnapshot, integerIn, knownKeys, numberIn, objectOf } from '../options.js';

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

interface Rule {
  readonly default: number;
  readonly check: (name: string, value: unknown) => number;
  readonly live: boolean;
  readonly meaning: string;
}

type Rules<T> = Readonly<Record<keyof T, Rule>>;
/** All numbers of a grade, none absent. */
export type Resolved<T> = { readonly [K in keyof T]-?: number };

const whole = (min: number, max: number) => (name: string, value: unknown) =>
  integerIn(name, value, min, max);
const decimal = (min: number, max: number) => (name: string, value: unknown) =>
  numberIn(name, value, min, max);
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

function live(value: number, check: Rule['check'], meaning: string): Rule {
  return { default: value, check, live: true, meaning };
}

function fixed(value: number, check: Rule['check'], meaning: string): Rule {
  return { default: value, check, live: false, meaning };
}

/** The default grade's options: default, check and meaning of each. */
export const ERROR_COST_RULES: Rules<ErrorCostOptions> = {
  shortWindowSize: live(8, whole(1, 1_000_000), 'calls the short window remembers'),
  longWindowSize: live(800, whole(1, 1_000_000), 'calls the long window remembers'),
  shortWindowErrorRatio: live(0.5, decimal(0, 1), 'share of failures the short window tolerates'),
  longWindowErrorRatio: live(0.05, decimal(0, 1), 'share of failures the long window tolerates'),
  minFailedLatencyMultiple: live(
    1.5,
    decimal(1, 100),
    'least that one failure costs, in average latencies',
  ),
  maxFailedLatencyMultiple: live(
    2,
    decimal(1, 100),
    'most that one slow failure costs, in average latencies',
  ),
  epsilon: live(0.02, inside, 'share of the cost that a window of successes leaves'),
  costHalfLifeMs: live(30_000, decimal(1, DAY_MS), 'time in which half of the cost is forgotten'),
  commonFaultMs: live(
    1000,
    decimal(0, DAY_MS),
    'time for which nodes that fail together are excused',
  ),
  minCalls: live(5, whole(1, 1_000_000), 'calls below which errors open nothing'),
  minIsolationMs: live(100, decimal(1, DAY_MS), 'shortest isolation'),
  maxIsolationMs: live(4000, decimal(1, DAY_MS), 'longest isolation'),
  relapseMs: live(
    20_000,
    decimal(0, DAY_MS),
    'good time that halves what isolations have grown to',
  ),
  isolationJitterRatio: live(0.2, decimal(0, 1), 'how far chance moves the length of an isolation'),
  halfOpenWindowSize: live(3, whole(0, 1000), 'good trial calls that end half-open'),
  trialTimeoutMs: live(5000, decimal(1, DAY_MS), 'time after which a trial call counts as failed'),
  rampMs: live(1000, decimal(0, DAY_MS), 'longest ramp from a tenth of the calls to all of them'),
};

/** The strict grade's options. */
export const STRICT_BREAKER_RULES: Rules<StrictBreakerOptions> = {
  shortWindowSize: fixed(1500, whole(1, 1_000_000), 'calls in the short window'),
  longWindowSize: fixed(3000, whole(1, 1_000_000), 'calls in the long window'),
  shortWindowErrorRatio: fixed(0.1, wholePercent, 'share of failures the short window tolerates'),
  longWindowErrorRatio: fixed(0.05, wholePercent, 'share of failures the long window tolerates'),
  minErrorCostMs: live(0.5, decimal(0, DAY_MS), 'cost below this becomes 0 with the next success'),
  maxFailedLatencyMultiple: live(
    2,
    whole(1, 1000),
    'most that one failure costs, in average latencies',
  ),
  minIsolationMs: live(100, whole(1, DAY_MS), 'shortest isolation'),
  maxIsolationMs: live(30_000, whole(1, DAY_MS), 'longest isolation'),
  epsilon: live(0.02, inside, 'smoothing; the ceiling re-reads it, the windows keep their factor'),
  halfOpenWindowSize: live(0, whole(0, 1_000_000), 'successes that end half-open; 0 is off'),
};

/** The default grade's numbers, the absent ones at their defaults. Throws on unknown keys and bad values. */
export function resolveErrorCostOptions(
  options: ErrorCostOptions = {},
): Resolved<ErrorCostOptions> {
  const current = defaultsOf(ERROR_COST_RULES);
  return merge(
    'breaker',
    current,
    options,
    ERROR_COST_RULES,
    STRICT_BREAKER_RULES,
    'the strict grade only: { strict: true }',
  );
}

/** The strict grade's numbers, the absent ones at their defaults. Throws on unknown keys and bad values. */
export function resolveStrictOptions(
  options: StrictBreakerOptions = {},
): Resolved<StrictBreakerOptions> {
  const current = defaultsOf(STRICT_BREAKER_RULES);
  return merge(
    'breaker',
    current,
    options,
    STRICT_BREAKER_RULES,
    ERROR_COST_RULES,
    'the default grade only, not to { strict: true }',
  );
}

/** The numbers after a change while running; throws for what is fixed, and then nothing has changed. */
export function changeErrorCostOptions(
  current: Resolved<ErrorCostOptions>,
  partial: ErrorCostOptions,
): Resolved<ErrorCostOptions> {
  return merge(
    'breaker',
    current,
    partial,
    ERROR_COST_RULES,
    STRICT_BREAKER_RULES,
    'the strict grade only: { strict: true }',
  );
}

/** The same for the strict grade. */
export function changeStrictOptions(
  current: Resolved<StrictBreakerOptions>,
  partial: StrictBreakerOptions,
): Resolved<StrictBreakerOptions> {
  objectOf('breaker', partial);
  for (const [key, value] of Object.entries(partial)) {
    const rule = STRICT_BREAKER_RULES[key as keyof StrictBreakerOptions] as Rule | undefined;
    if (
      rule?.live === false &&
      value !== undefined &&
      value !== current[key as keyof StrictBreakerOptions]
    ) {
      throw new TypeError(`breaker.${key} is fixed at construction in the strict grade`);
    }
  }
  return merge(
    'breaker',
    current,
    partial,
    STRICT_BREAKER_RULES,
    ERROR_COST_RULES,
    'the default grade only, not to { strict: true }',
  );
}

/** A grade's options as the `/flags` page shows them. */
export function breakerFlags<T extends object>(
  values: Resolved<T>,
  rules: Rules<T>,
): FlagSnapshot[] {
  return (Object.keys(rules) as (keyof T & string)[]).map((name) => ({
    name,
    value: values[name],
    default: rules[name].default,
    meaning: rules[name].meaning,
    live: rules[name].live,
  }));
}

function defaultsOf<T extends object>(rules: Rules<T>): Resolved<T> {
  const values: Record<string, number> = {};
  for (const [key, rule] of Object.entries<Rule>(rules)) values[key] = rule.default;
  return values as Resolved<T>;
}

function merge<T extends object>(
  of: string,
  current: Resolved<T>,
  given: object,
  rules: Rules<T>,
  otherGrade: object,
  belongsTo: string,
): Resolved<T> {
  for (const key of Object.keys(objectOf(of, given))) {
    if (!Object.hasOwn(rules, key) && Object.hasOwn(otherGrade, key)) {
      throw new TypeError(`${of}.${key} belongs to ${belongsTo}`);
    }
  }
  knownKeys(of, given, rules);
  const values: Record<string, number> = { ...current };
  for (const [key, value] of Object.entries(given)) {
    if (value !== undefined) values[key] = rules[key as keyof T].check(`${of}.${key}`, value);
  }
  for (const [least, most] of PAIRS) {
    const [min = 0, max = 0] = [values[least], values[most]];
    if (min > max)
      throw new RangeError(`${of}.${most} must be at least ${of}.${least} (${min}), got ${max}`);
  }
  return values as Resolved<T>;
}
