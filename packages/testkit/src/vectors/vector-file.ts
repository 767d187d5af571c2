/** Thrown by a replay at the first thing that is not as recorded. */
export class Difference extends Error {
  override readonly name = 'Difference';

  constructor(
    readonly where: string,
    readonly expected: unknown,
    readonly got: unknown,
  ) {
    super(`${where}: expected ${brief(expected)}, got ${brief(got)}`);
  }
}

/** Throws a {@link Difference} unless both are equal: exactly, deeply, and with 0 and -0 as one. */
export function same(where: string, expected: unknown, got: unknown): void {
  if (Array.isArray(expected) && Array.isArray(got)) {
    if (expected.length !== got.length) throw new Difference(where, expected, got);
    for (const [i, value] of expected.entries()) same(`${where}[${i}]`, value, got[i]);
  } else if (isObject(expected) && isObject(got)) {
    same(`${where} keys`, Object.keys(expected).toSorted(), Object.keys(got).toSorted());
    for (const key of Object.keys(expected)) same(`${where}.${key}`, expected[key], got[key]);
  } else if (expected !== got) throw new Difference(where, expected, got);
}

/**
 * A JSON object of which every field has to be read: what nobody looked at was not tested. Fields are
 * read by the method that says what they must be; a field that is something else is a {@link Difference}.
 */
export class VectorRecord {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #unread: Set<string>;
  readonly #children: VectorRecord[] = [];

  constructor(
    fields: unknown,
    readonly where: string = '',
  ) {
    if (!isObject(fields)) throw new Difference(where || 'file', 'an object', fields);
    this.#fields = fields;
    this.#unread = new Set(Object.keys(fields));
  }

  /** The names of the fields, for records whose keys are data. Reads none of them. */
  get names(): string[] {
    return Object.keys(this.#fields);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  /** The field as it stands; `undefined` if it is absent. */
  any(name: string): unknown {
    this.#unread.delete(name);
    return this.#fields[name];
  }

  number(name: string): number {
    const value = this.any(name);
    if (typeof value !== 'number') throw new Difference(this.#path(name), 'a number', value);
    return value;
  }

  text(name: string): string {
    const value = this.any(name);
    if (typeof value !== 'string') throw new Difference(this.#path(name), 'a text', value);
    return value;
  }

  list(name: string): readonly unknown[] {
    const value = this.any(name);
    if (!Array.isArray(value)) throw new Difference(this.#path(name), 'a list', value);
    return value;
  }

  texts(name: string): readonly string[] {
    return this.list(name).map((value, i) => {
      if (typeof value !== 'string')
        throw new Difference(`${this.#path(name)}[${i}]`, 'a text', value);
      return value;
    });
  }

  numbers(name: string): readonly number[] {
    return numbersOf(this.#path(name), this.list(name));
  }

  /** An object inside this one; its fields have to be read too. */
  record(name: string): VectorRecord {
    return this.#child(this.any(name), this.#path(name));
  }

  /** A list of objects; their fields have to be read too. */
  records(name: string): VectorRecord[] {
    return this.list(name).map((value, i) => this.#child(value, `${this.#path(name)}[${i}]`));
  }

  /** The fields that nobody read, those of inner records included. */
  unread(): string[] {
    return [
      ...[...this.#unread].map((name) => this.#path(name)),
      ...this.#children.flatMap((child) => child.unread()),
    ];
  }

  #child(fields: unknown, where: string): VectorRecord {
    const child = new VectorRecord(fields, where);
    this.#children.push(child);
    return child;
  }

  #path(name: string): string {
    return this.where === '' ? name : `${this.where}.${name}`;
  }
}

/** The list, if all of it is numbers; else a {@link Difference}. */
export function numbersOf(where: string, value: unknown): readonly number[] {
  if (!Array.isArray(value)) throw new Difference(where, 'a list of numbers', value);
  for (const [i, item] of value.entries()) {
    if (typeof item !== 'number') throw new Difference(`${where}[${i}]`, 'a number', item);
  }
  return value as number[];
}

/**
 * How files of one kind are replayed. To add one: a file in this folder that exports a `VectorKind`, and its line in
 * the table of `run-vector-files.ts`.
 */
export interface VectorKind {
  /** The values of the field `kind` that it takes. */
  readonly kinds: readonly string[];
  /** Replays the whole file, and throws a {@link Difference} (see {@link same}) at the first thing that is not as recorded. */
  replay(file: VectorRecord): void;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value, short enough for a line. */
export function brief(value: unknown): string {
  // NaN is no JSON, and undefined has none
  const isPlain = typeof value === 'number' || value === undefined;
  const text = isPlain ? String(value) : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
