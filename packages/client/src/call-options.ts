import {
  booleanOf,
  functionOf,
  having,
  integerIn,
  knownKeys,
  numberIn,
  textOf,
} from '@elimit/core';
import type { CallOptions } from './call.js';
import { originOf } from './naming/naming.js';

type Rules = CallOptions<never>;
type Check = (name: string, value: never) => unknown;

const DAY_MS = 86_400_000;

const SIGNAL_METHODS = ['addEventListener', 'removeEventListener'] as const;

const CHECKS: Readonly<Record<keyof Rules, Check>> = {
  method: textOf,
  resend: booleanOf,
  replayable: booleanOf,
  signal: (name, value: AbortSignal) =>
    value instanceof AbortSignal ? value : having(name, value, SIGNAL_METHODS),
  timeoutMs: (name, value) => numberIn(name, value, 1, DAY_MS),
  carriedTimeoutMs: (name, value) => numberIn(name, value, -DAY_MS, Number.MAX_SAFE_INTEGER),
  maxRetries: (name, value) => integerIn(name, value, 0, 100),
  errorCost: booleanOf,
  breaker: booleanOf,
  origin: originOf,
  classify: functionOf,
  discard: functionOf,
};

const KEYS = Object.keys(CHECKS) as readonly (keyof Rules)[];

/** A check as of `checkCallOptions`, put together once: it runs for every call. */
export function callOptionsCheck(
  of: string,
  keys: readonly (keyof Rules)[] = KEYS,
): (options: Rules) => void {
  const known = Object.fromEntries(keys.map((key) => [key, 0]));
  const checks = keys.map((key) => ({ key, name: `${of}.${key}`, check: CHECKS[key] }));
  return (options) => {
    knownKeys(of, options, known);
    for (const { key, name, check } of checks) {
      const value = options[key];
      if (value !== undefined) check(name, value as never);
    }
  };
}

/**
 * Throws on unknown keys and bad values of what is said about a call.
 *
 * @param of - what the options belong to, for messages: `call`
 * @param keys - those that are known there
 */
export function checkCallOptions(
  of: string,
  options: CallOptions<never>,
  keys: readonly (keyof Rules)[] = KEYS,
): void {
  callOptionsCheck(of, keys)(options);
}
