import {
  booleanOf,
  type FlagSnapshot,
  integerIn,
  knownKeys,
  numberIn,
  objectOf,
  show,
} from './options.js';

/** One option of an engine: its default, and its check. What pages say about it stands in the status package. */
export interface OptionRule<T> {
  readonly default: T;
  readonly check: (name: string, value: unknown) => T;
  /** True if `configure` takes it while running. */
  readonly live: boolean;
}

/** The rules of all options of one engine, in the order in which they are shown. */
export type OptionRules<T> = { readonly [K in keyof T]-?: OptionRule<T[K]> };

/** An option that `configure` takes while running. */
export function live<T>(value: T, check: OptionRule<T>['check']): OptionRule<T> {
  return { default: value, check, live: true };
}

/** An option that stays as it was at construction. */
export function fixed<T>(value: T, check: OptionRule<T>['check']): OptionRule<T> {
  return { default: value, check, live: false };
}

/** The largest whole number an option takes: what brpc's 32-bit settings hold. */
export const MAX_INTEGER = 2 ** 31 - 1;

/** A whole number from `min` to `max`. */
export const integer =
  (min: number, max: number = MAX_INTEGER) =>
  (name: string, value: unknown): number =>
    integerIn(name, value, min, max);

/** A finite number from `min` to `max`. */
export const decimal =
  (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  (name: string, value: unknown): number =>
    numberIn(name, value, min, max);

/** `true` or `false`. */
export const yesOrNo = booleanOf;

/** Every option, checked, the absent ones at their defaults. Unknown keys and bad values throw; `given` is only read. */
export function resolveByRules<T extends object>(
  of: string,
  given: unknown,
  rules: OptionRules<T>,
): T {
  knownKeys(of, given, rules);
  const options = given as Partial<T>;
  const resolved = {} as T;
  for (const key of Object.keys(rules) as (keyof T & string)[]) {
    const value = options[key];
    const rule = rules[key];
    resolved[key] = value === undefined ? rule.default : rule.check(`${of}.${key}`, value);
  }
  return resolved;
}

/**
 * The options after a change while running: `current`, with what `given` names put in its place. Throws a
 * `TypeError` for an option that is fixed at construction, unless it is given as it stands.
 */
export function changeByRules<T extends object, S extends T>(
  of: string,
  current: S,
  given: Readonly<Record<string, unknown>>,
  rules: OptionRules<T>,
): S {
  knownKeys(of, given, rules);
  const changed: T = { ...current };
  for (const key of Object.keys(rules) as (keyof T & string)[]) {
    const value = given[key];
    const rule = rules[key];
    if (value === undefined || value === current[key]) continue;
    if (!rule.live) {
      throw new TypeError(
        `${of}.${key} is fixed at construction (${show(current[key])}), got ${show(value)}`,
      );
    }
    changed[key] = rule.check(`${of}.${key}`, value);
  }
  return changed as S;
}

/** The options of an engine as the `/flags` page shows them. */
export function flagsByRules<T extends object>(values: T, rules: OptionRules<T>): FlagSnapshot[] {
  return (Object.keys(rules) as (keyof T & string)[]).map((name) => ({
    name,
    value: values[name],
    default: rules[name].default,
    live: rules[name].live,
  }));
}

/** Throws a `TypeError` for an option that is not `known`, but stands in `foreign`: `why` says where it belongs. */
export function refuseForeign(
  of: string,
  given: object,
  known: object,
  foreign: object,
  why: string,
): void {
  for (const key of Object.keys(objectOf(of, given))) {
    if (!Object.hasOwn(known, key) && Object.hasOwn(foreign, key)) {
      throw new TypeError(`${of}.${key} ${why}`);
    }
  }
}

/** The same for an option of a limiter that only its strict grade has. */
export function refuseStrictOnly(of: string, given: object, known: object, strict: object): void {
  const why = `has no meaning in the default grade; it belongs to { type: '${of}', strict: true }`;
  refuseForeign(of, given, known, strict, why);
}
