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

const CHECKS: Readonly<Record<keyof Rules, Check>> = {
  method: textOf,
  resend: booleanOf,
  replayable: booleanOf,
  signal: (name, value: AbortSignal) =>
    having(name, value, ['addEventListener', 'removeEventListener']),
  timeoutMs: (name, value) => numberIn(name, value, 1, DAY_MS),
  carriedTimeoutMs: (name, value) => numberIn(name, value, -DAY_MS, Number.MAX_SAFE_INTEGER),
  maxRetries: (name, value) => integerIn(name, value, 0, 100),
  errorCost: booleanOf,
  breaker: booleanOf,
  origin: originOf,
  classify: functionOf,
  discard: functionOf,
};

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
  knownKeys(of, options, keys === KEYS ? CHECKS : Object.fromEntries(keys.map((key) => [key, 0])));
  for (const key of keys) {
    const value = options[key];
    if (value !== undefined) CHECKS[key](`${of}.${key}`, value as never);
  }
}

const KEYS = Object.keys(CHECKS) as readonly (keyof Rules)[];
