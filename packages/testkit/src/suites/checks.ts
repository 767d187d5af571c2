import { strict as assert } from 'node:assert';

/**
 * Registers each check as a test, but for those that are excepted with a reason.
 *
 * @throws AssertionError for an exception from a check that there is not
 */
export function registerChecks<T>(
  it: (name: string, run: () => T) => void,
  checks: Readonly<Record<string, () => T>>,
  except: Readonly<Record<string, string>> = {},
): void {
  for (const name of Object.keys(except)) {
    assert.ok(Object.hasOwn(checks, name), `no such check to be excepted from: ${name}`);
  }
  for (const [name, check] of Object.entries(checks)) {
    if (!Object.hasOwn(except, name)) it(name, check);
  }
}
