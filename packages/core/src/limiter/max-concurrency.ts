import { MAX_INTEGER } from '../option-rules.js';
import { booleanOf, functionOf, integerIn, knownKeys, show, textOf } from '../options.js';
import { type AutoOptions, type AutoSettings, resolveAutoOptions } from './auto.js';
import {
  type AutoDocumentedOptions,
  type AutoStrictOptions,
  type AutoStrictSettings,
  resolveAutoStrictOptions,
} from './auto-strict.js';
import { type ConstantLimiterOptions, resolveConstantOptions } from './constant.js';
import { type GradientOptions, type GradientSettings, resolveGradientOptions } from './gradient.js';
import type { Limiter, LimiterContext } from './limiter.js';
import { resolveTimeoutOptions, type TimeoutOptions, type TimeoutSettings } from './timeout.js';
import {
  resolveTimeoutStrictOptions,
  type TimeoutStrictOptions,
  type TimeoutStrictSettings,
} from './timeout-strict.js';

/** The short form of the `timeout` limiter. */
export interface TimeoutLimit {
  /** The time a call has, in milliseconds. */
  readonly timeoutMs: number;
  /** The most calls in flight, whatever their latency. @default 100 */
  readonly maxConcurrency?: number | undefined;
}

/** The long forms: a law by its name, with its options. A registered limiter's options go to its factory. */
export type LimiterOptions =
  | ({ readonly type: 'constant' } & ConstantLimiterOptions)
  | { readonly type: 'unlimited' }
  | ({ readonly type: 'gradient' } & GradientOptions)
  | ({ readonly type: 'auto'; readonly strict?: false | undefined } & AutoOptions)
  | ({
      readonly type: 'auto';
      readonly strict: true;
      readonly law?: 'code' | undefined;
    } & AutoStrictOptions)
  | ({
      readonly type: 'auto';
      readonly strict: true;
      readonly law: 'documented';
    } & AutoDocumentedOptions)
  | ({ readonly type: 'timeout'; readonly strict?: false | undefined } & TimeoutOptions)
  | ({ readonly type: 'timeout'; readonly strict: true } & TimeoutStrictOptions)
  | { readonly type: string; readonly [option: string]: unknown };

/**
 * What a user writes where a limit is wanted:
 *
 * - a whole number from 1 to 2147483647, or its decimal text;
 * - `'auto'`, `'timeout'`, `'gradient'`, `'unlimited'`, in any case, or the name of a registered limiter;
 * - `{ timeoutMs, maxConcurrency }`, the `timeout` limiter;
 * - `{ type, … }`, a law with its options;
 * - a {@link Limiter} of one's own.
 */
export type MaxConcurrency = number | string | TimeoutLimit | LimiterOptions | Limiter;

/** What every parsed max-concurrency value has. */
export interface ParsedValue {
  /** The law: `constant`, `unlimited`, `auto`, `timeout`, `gradient`, a registered name, or `custom` for an instance. */
  readonly type: string;
  /** The value in one canonical spelling: `10`, `auto`, … */
  readonly text: string;
  /** The options as they were written, for a change while running. */
  readonly given: Readonly<Record<string, unknown>>;
}

/** A max-concurrency value that has been checked, ready for `createLimiter`. */
export type ParsedMaxConcurrency =
  | (ParsedValue & { readonly engine: 'constant'; readonly settings: ConstantLimiterOptions })
  | (ParsedValue & { readonly engine: 'unlimited' })
  | (ParsedValue & { readonly engine: 'auto'; readonly settings: AutoSettings })
  | (ParsedValue & { readonly engine: 'autoStrict'; readonly settings: AutoStrictSettings })
  | (ParsedValue & { readonly engine: 'timeout'; readonly settings: TimeoutSettings })
  | (ParsedValue & { readonly engine: 'timeoutStrict'; readonly settings: TimeoutStrictSettings })
  | (ParsedValue & { readonly engine: 'gradient'; readonly settings: GradientSettings })
  | (ParsedValue & { readonly engine: 'registered'; readonly factory: LimiterFactory })
  | (ParsedValue & { readonly engine: 'custom'; readonly limiter: Limiter });

/** Builds a registered limiter. `options` is the options object without `type`; checking it is the factory's part. */
export type LimiterFactory = (
  options: Readonly<Record<string, unknown>>,
  context: LimiterContext,
) => Limiter;

const NAMES = ['auto', 'timeout', 'gradient', 'unlimited', 'constant'];
const NAME = /^[a-z_][\w.-]*$/i;
const DECIMAL = /^[+-]?\d+$/;
const ADVICE = `write a whole number from 1 to ${MAX_INTEGER}, 'auto', 'timeout', 'gradient', 'unlimited', { timeoutMs, maxConcurrency }, { type, … }, a limiter or a registered name`;
const REGISTERED = Symbol.for('@elimit/core/limiters');

/** Process-wide, so that two copies of the package know the same names. */
function registered(): Map<string, LimiterFactory> {
  const scope = globalThis as { [REGISTERED]?: Map<string, LimiterFactory> };
  scope[REGISTERED] ??= new Map();
  return scope[REGISTERED];
}

/**
 * Makes a limiter of one's own known by a name, which can then be written wherever `'auto'` can. Case does not matter.
 *
 * @returns takes the name back; guards built with it keep their limiter
 * @throws RangeError for a name that is taken or no name (letters, digits, `_`, `-`, `.`, not starting with a digit)
 */
export function registerLimiter(name: string, factory: LimiterFactory): () => void {
  const key = textOf('name', name).toLowerCase();
  functionOf('factory', factory);
  if (!NAME.test(name)) {
    throw new RangeError(
      `name must be letters, digits, _, - or ., not starting with a digit, got ${show(name)}`,
    );
  }
  const limiters = registered();
  if (NAMES.includes(key) || key === 'custom' || limiters.has(key)) {
    throw new RangeError(`name ${show(name)} is taken`);
  }
  limiters.set(key, factory);
  return () => {
    if (limiters.get(key) === factory) limiters.delete(key);
  };
}

/**
 * Reads a max-concurrency value.
 *
 * @throws TypeError or RangeError that says what would be right. brpc's traps are errors here: 0 and below do not mean
 *   unlimited, and `'constant'` names no number.
 */
export function parseMaxConcurrency(value: MaxConcurrency): ParsedMaxConcurrency {
  if (typeof value === 'number') return parseNumber(value, value);
  if (typeof value === 'string') return parseText(value);
  if (typeof value === 'object' && (value as unknown) !== null && !Array.isArray(value)) {
    if ('admits' in value || 'record' in value || 'started' in value || 'refused' in value) {
      const limiter = limiterOf('limit', value);
      return { engine: 'custom', type: 'custom', text: 'custom', given: {}, limiter };
    }
    if ('type' in value) return parseOptions(value);
    if ('timeoutMs' in value) return parseType('timeout', { ...value });
    const keys = Object.keys(value).join(', ') || 'nothing';
    throw new TypeError(`max concurrency has ${keys}, but neither timeoutMs nor type; ${ADVICE}`);
  }
  throw new TypeError(`max concurrency ${show(value)} is no limit; ${ADVICE}`);
}

/** True if a change from one value to the other keeps the engine, so that `configure` will do. */
export function sameEngine(a: ParsedMaxConcurrency, b: ParsedMaxConcurrency): boolean {
  if (a.engine !== b.engine || a.type !== b.type) return false;
  if (a.engine === 'custom') return a.limiter === (b as typeof a).limiter;
  if (a.engine === 'autoStrict') return a.settings.law === (b as typeof a).settings.law;
  return true;
}

/** The value, if it has all members of a {@link Limiter}; else a `TypeError` that names the missing ones. */
export function limiterOf(name: string, value: unknown): Limiter {
  const members = (typeof value === 'object' && value !== null ? value : {}) as Partial<
    Record<keyof Limiter, unknown>
  >;
  const missing = (['admits', 'started', 'refused', 'record'] as const)
    .filter((member) => typeof members[member] !== 'function')
    .map((member) => `${member}()`);
  if (typeof members.maxConcurrency !== 'number') missing.push('maxConcurrency');
  if (missing.length > 0) {
    throw new TypeError(`${name} must be a limiter; missing: ${missing.join(', ')}`);
  }
  return value as Limiter;
}

function parseNumber(number: number, value: unknown): ParsedMaxConcurrency {
  if (number <= 0) {
    throw new RangeError(
      `max concurrency ${show(value)} would admit nothing; write 'unlimited' for no limit, or a whole number from 1 to ${MAX_INTEGER}`,
    );
  }
  const maxConcurrency = integerIn('max concurrency', number, 1, MAX_INTEGER);
  const settings = { maxConcurrency };
  return {
    engine: 'constant',
    type: 'constant',
    text: String(maxConcurrency),
    given: settings,
    settings,
  };
}

function parseText(text: string): ParsedMaxConcurrency {
  if (DECIMAL.test(text)) return parseNumber(Number(text), text);
  const type = text.toLowerCase();
  if (type === 'constant') {
    throw new RangeError(`max concurrency 'constant' names no number; write the number itself`);
  }
  return parseType(type, {}, text);
}

function parseOptions(options: object): ParsedMaxConcurrency {
  const { type, ...rest } = options as Record<string, unknown>;
  if (typeof type !== 'string') {
    throw new TypeError(`limit.type must be the name of a limiter, got ${show(type)}`);
  }
  return parseType(type.toLowerCase(), rest, type);
}

function parseType(
  type: string,
  options: Readonly<Record<string, unknown>>,
  written: string = type,
): ParsedMaxConcurrency {
  const { strict, ...rest } = options;
  const isStrict = strict !== undefined && booleanOf(`${type}.strict`, strict);
  switch (type) {
    case 'constant': {
      const settings = resolveConstantOptions(options);
      return {
        engine: type,
        type,
        text: String(settings.maxConcurrency),
        given: options,
        settings,
      };
    }
    case 'unlimited':
      knownKeys(type, options, {});
      return { engine: type, type, text: type, given: {} };
    case 'gradient':
      return {
        engine: type,
        type,
        text: type,
        given: options,
        settings: resolveGradientOptions(options),
      };
    case 'auto': {
      if (isStrict) {
        const { law: _, ...given } = rest;
        return {
          engine: 'autoStrict',
          type,
          text: type,
          given,
          settings: resolveAutoStrictOptions(rest),
        };
      }
      return { engine: type, type, text: type, given: rest, settings: resolveAutoOptions(rest) };
    }
    case 'timeout':
      return isStrict
        ? {
            engine: 'timeoutStrict',
            type,
            text: type,
            given: rest,
            settings: resolveTimeoutStrictOptions(rest),
          }
        : { engine: type, type, text: type, given: rest, settings: resolveTimeoutOptions(rest) };
    default: {
      const factory = registered().get(type);
      if (factory === undefined) {
        throw new RangeError(`max concurrency ${show(written)} is no known limiter; ${ADVICE}`);
      }
      return { engine: 'registered', type, text: type, given: options, factory };
    }
  }
}
