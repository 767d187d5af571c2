import { createGuard, type MaxConcurrency, parseMaxConcurrency } from '@elimit/core';
import { Difference, same, type VectorKind } from './vector-file.js';

/** Where we answer otherwise than brpc, on purpose: what we answer, and why. By the value as it is written. */
const VALUE_DEVIATIONS: ReadonlyMap<unknown, { answer: string; because: string }> = new Map([
  ...['0', '-1', '-7', '+0', '-2147483648', 0, -1, -100].map(
    (value) =>
      [value, { answer: 'error', because: 'to have no limit is asked for by name' }] as const,
  ),
  ...['Unlimited', 'UNLIMITED'].map(
    (value) => [value, { answer: 'unlimited', because: 'names are known in any case' }] as const,
  ),
  ...['constant', 'Constant'].map(
    (value) => [value, { answer: 'error', because: 'it names no number' }] as const,
  ),
  ['gradient', { answer: 'gradient', because: 'there is such a limiter here' }],
]);

/** The same for changes while running: from, to, what holds afterwards. brpc keeps the engine and shuts or ignores. */
const CHANGE_DEVIATIONS: readonly { from: string; to: string; limit: number }[] = [
  { from: 'constant 10', to: '0', limit: 10 }, // refused, so nothing has changed
  { from: 'constant 10', to: 'auto', limit: 20 }, // the engine is swapped
  { from: 'auto (initial 40)', to: '10', limit: 10 }, // likewise
];

/** What a value is read as: the law and, for a number, that number; or `error`. */
function readValue(value: unknown): string {
  try {
    const { type, text } = parseMaxConcurrency(value as MaxConcurrency);
    return type === 'constant' ? `constant ${text}` : type;
  } catch {
    return 'error';
  }
}

/** The file that documents how brpc reads max-concurrency values: each row is as in brpc, or listed above. */
export const maxConcurrencyValueVectors: VectorKind = {
  kinds: ['max-concurrency-value'],
  replay(file) {
    same('columns', ['text', 'type', 'value', 'int', 'at_start'], file.list('columns'));
    for (const [i, row] of file.list('rows').entries()) {
      const [text, , value, , atStart] = cells(`rows[${i}]`, row, 5);
      const brpc = atStart === 'constant' ? `constant ${String(value)}` : atStart;
      compare(`rows[${i}]`, text, brpc === 'no limiter' ? 'unlimited' : brpc);
    }
    const integers = file.record('integers');
    same('integers.columns', ['given', 'type', 'value', 'int'], integers.list('columns'));
    for (const [i, row] of integers.list('rows').entries()) {
      const [given, type, value] = cells(`integers.rows[${i}]`, row, 4);
      compare(
        `integers.rows[${i}]`,
        given,
        type === 'constant' ? `constant ${String(value)}` : type,
      );
    }
    const equality = file.record('equality');
    equality.text('about');
    same('equality.columns', ['value', 'compared_with', 'equal'], equality.list('columns'));
    for (const [i, row] of equality.list('rows').entries()) {
      const [value, other, equal] = cells(`equality.rows[${i}]`, row, 3);
      const { text } = parseMaxConcurrency(value as string);
      same(`equality.rows[${i}]`, equal, text === String(other).toLowerCase());
    }
    const changes = file.record('live_change');
    changes.text('about');
    changes.text('hazard');
    const columns = ['limiter', 'new_value', 'limit_afterwards', 'admits_first_request'];
    same('live_change.columns', columns, changes.list('columns'));
    for (const [i, row] of changes.list('rows').entries()) {
      const [from, to, limit, admits] = cells(`live_change.rows[${i}]`, row, 4);
      const ours = CHANGE_DEVIATIONS.find((change) => change.from === from && change.to === to);
      const want = ours === undefined ? { limit, admits } : { limit: ours.limit, admits: true };
      same(`live_change.rows[${i}]`, want, changed(String(from), String(to)));
    }
  },
};

/** A guard with one limit is told another. */
function changed(from: string, to: string): { limit: number; admits: boolean } {
  const limit: MaxConcurrency = from.startsWith('constant ')
    ? from.slice('constant '.length)
    : { type: 'auto', strict: true, initialMaxConcurrency: 40 };
  const guard = createGuard({ limit, registry: false });
  try {
    guard.configure({ limit: to });
  } catch {
    // refused: the limit of before has to stand, which is what is compared
  }
  return { limit: guard.maxConcurrency, admits: guard.tryAcquire().admitted };
}

function compare(where: string, value: unknown, brpc: unknown): void {
  same(where, VALUE_DEVIATIONS.get(value)?.answer ?? brpc, readValue(value));
}

function cells(where: string, row: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(row) || row.length !== count) {
    throw new Difference(where, `${count} cells`, row);
  }
  return row;
}
