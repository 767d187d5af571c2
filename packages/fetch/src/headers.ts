import type { Dispatcher } from 'undici';

/** A request's headers in any form that undici takes, and a few more, which win. */
export function withHeaders(
  headers: Dispatcher.DispatchOptions['headers'],
  more: Readonly<Record<string, string>>,
): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = {};
  for (const [name, value] of entriesOf(headers)) {
    if (value === undefined || name.toLowerCase() in more) continue;
    const before = all[name];
    all[name] = before === undefined ? value : [before, value].flat();
  }
  return Object.assign(all, more);
}

function entriesOf(
  headers: Dispatcher.DispatchOptions['headers'],
): Iterable<readonly [string, string | string[] | undefined]> {
  if (headers === null || headers === undefined) return [];
  if (Array.isArray(headers)) return pairsOf(headers);
  if (Symbol.iterator in headers) {
    return headers as Iterable<[string, string | string[] | undefined]>;
  }
  return Object.entries(headers);
}

/** undici's flat list: name, value, name, value. */
function* pairsOf(list: readonly string[]): Generator<readonly [string, string]> {
  for (let i = 0; i + 1 < list.length; i += 2) yield [list[i] as string, list[i + 1] as string];
}
