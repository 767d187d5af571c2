/** One option of a source, as the `/flags` page shows it. */
export interface FlagSnapshot {
  readonly name: string;
  readonly value: unknown;
  readonly default: unknown;
  /** What it is for, told by parts of one's own; the status pages know the words for ours. */
  readonly meaning?: string | undefined;
  /** True if `configure` takes it while running. */
  readonly live: boolean;
}

/** Says a value as a user would recognise it, short enough for a message. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/** Runs, and says of what it throws where the options stand that it is about. */
export function located<T>(where: string, run: () => T): T {
  return retold((message) => `${where}: ${message}`, run);
}

/** Runs, and gives options that it complains of the name `to` in place of its own, `from`: as their user wrote them. */
export function renamed<T>(from: string, to: string, run: () => T): T {
  const own = new RegExp(`(?<![.\\w])${from}(?=\\.\\w| must)`, 'g'); // not an option of the same name
  return retold((message) => (message.search(own) === 0 ? message.replace(own, to) : message), run);
}

function retold<T>(tell: (message: string) => string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof Error) error.message = tell(error.message);
    throw error;
  }
}

/** Throws a `TypeError` unless `options` is a plain bag of options whose keys are all in `known`. */
export function knownKeys(of: string, options: unknown, known: object): void {
  objectOf(of, options);
  for (const key of Object.keys(options as object)) {
    if (!Object.hasOwn(known, key)) {
      throw new TypeError(`${of}.${key} is not an option; known: ${Object.keys(known).join(', ')}`);
    }
  }
}

/** The value, if it is an object (not null, not an array); else a `TypeError`. */
export function objectOf<T>(name: string, value: T): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${name} must be an object, got ${show(value)}`);
  }
  return value;
}

/** The value, if it is a whole number from `min` to `max`; else a `TypeError` or `RangeError`. */
export function integerIn(name: string, value: unknown, min: number, max: number): number {
  // written so that NaN fails too
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw outside(name, 'a whole number', value, min, max);
}

/** The value, if it is a finite number from `min` to `max`; else a `TypeError` or `RangeError`. */
export function numberIn(name: string, value: unknown, min: number, max: number): number {
  if (Number.isFinite(value) && (value as number) >= min && (value as number) <= max) {
    return value as number;
  }
  throw outside(name, 'a number', value, min, max);
}

/** The value, if it is `true` or `false`; else a `TypeError`. */
export function booleanOf(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') {
    throw new TypeError(`${name} must be true or false, got ${show(value)}`);
  }
  return value;
}

/** The value, if it is a function; else a `TypeError`. */
export function functionOf<T>(name: string, value: T): T {
  if (typeof value !== 'function') {
    throw new TypeError(`${name} must be a function, got ${show(value)}`);
  }
  return value;
}

/** The value, if it is an object with all of these methods; else a `TypeError` that names the first one missing. */
export function having<T extends object>(
  name: string,
  value: T,
  methods: readonly (keyof T & string)[],
): T {
  objectOf(name, value);
  for (const method of methods) functionOf(`${name}.${method}`, value[method]);
  return value;
}

/** The value, if it is a string of at least one character; else a `TypeError`. */
export function textOf(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') {
    throw new TypeError(`${name} must be a non-empty string, got ${show(value)}`);
  }
  return value;
}

/** The value, if it is one of `choices`; else a `TypeError` or `RangeError` that lists them. */
export function oneOf<T extends string>(name: string, value: unknown, choices: readonly T[]): T {
  if ((choices as readonly unknown[]).includes(value)) return value as T;
  const Failure = typeof value === 'string' ? RangeError : TypeError;
  throw new Failure(`${name} must be one of ${choices.join(', ')}, got ${show(value)}`);
}

/** Apart from the checks, which stand on hot paths: what is small there, V8 puts in line. */
function outside(name: string, what: string, value: unknown, min: number, max: number): Error {
  const Failure = typeof value === 'number' ? RangeError : TypeError;
  return new Failure(`${name} must be ${what}${range(min, max)}, got ${show(value)}`);
}

function range(min: number, max: number): string {
  if (min === Number.MIN_VALUE) return ` above 0 and at most ${max}`;
  const low = min > -Number.MAX_SAFE_INTEGER;
  const high = max < Number.MAX_SAFE_INTEGER;
  if (low && high) return ` from ${min} to ${max}`;
  if (low) return ` of at least ${min}`;
  return high ? ` of at most ${max}` : '';
}
