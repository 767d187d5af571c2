import { admissionCases } from './server-adapter-admission.js';
import { endingCases } from './server-adapter-endings.js';
import type { ServerAdapterHarness, SuiteCase } from './server-adapter-harness.js';

/**
 * What every server adapter does, as cases for any test runner; they use real sockets on the loopback.
 *
 * ```ts
 * it.each(serverAdapterCases(harness))('$name', ({ run }) => run());
 * ```
 *
 * @throws Error if an exception names no case, or if there are more than two
 */
export function serverAdapterCases(harness: ServerAdapterHarness): SuiteCase[] {
  const cases = [...admissionCases(harness), ...endingCases(harness)];
  const exceptions = Object.keys(harness.exceptions ?? {});
  if (exceptions.length > 2) {
    throw new Error(`${harness.name} differs in ${exceptions.length} cases: two at most`);
  }
  for (const name of exceptions) {
    if (!cases.some((one) => one.name === name)) throw new Error(`no case is named: ${name}`);
  }
  return cases.filter(({ name }) => !exceptions.includes(name));
}
