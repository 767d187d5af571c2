import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  createLimiter,
  type Limiter,
  type MaxConcurrency,
  parseMaxConcurrency,
  registerLimiter,
} from '../../src/index.js';
import { sameEngine } from '../../src/limiter/max-concurrency.js';

const context = { random: () => 0, nowUs: 1_000_000 };
const limitOf = (value: unknown): number =>
  createLimiter(parseMaxConcurrency(value as MaxConcurrency), context).maxConcurrency;

const parse = (value: unknown) => parseMaxConcurrency(value as MaxConcurrency);

const own: Limiter = {
  maxConcurrency: 3,
  admits: (inflight) => inflight <= 3,
  started() {},
  refused() {},
  record() {},
};

describe('values that are read', () => {
  it.each<[value: unknown, type: string, text: string, limit: number]>([
    [1, 'constant', '1', 1],
    [2_147_483_647, 'constant', '2147483647', 2_147_483_647],
    ['10', 'constant', '10', 10],
    ['+5', 'constant', '5', 5],
    ['007', 'constant', '7', 7],
    ['auto', 'auto', 'auto', 20],
    ['aUto', 'auto', 'auto', 20],
    ['timeout', 'timeout', 'timeout', 100],
    ['GRADIENT', 'gradient', 'gradient', 20],
    ['Unlimited', 'unlimited', 'unlimited', Number.POSITIVE_INFINITY],
    [{ timeoutMs: 300 }, 'timeout', 'timeout', 100],
    [{ timeoutMs: 300, maxConcurrency: 7 }, 'timeout', 'timeout', 7],
    [{ type: 'constant', maxConcurrency: 8 }, 'constant', '8', 8],
    [{ type: 'unlimited' }, 'unlimited', 'unlimited', Number.POSITIVE_INFINITY],
    [{ type: 'Auto', strict: true }, 'auto', 'auto', 40],
    [{ type: 'auto', strict: false, initialMaxConcurrency: 5 }, 'auto', 'auto', 5],
    [{ type: 'auto', strict: true, law: 'documented', alpha: 0.5 }, 'auto', 'auto', 40],
    [{ type: 'timeout', strict: true, timeoutMs: 80, maxConcurrency: 9 }, 'timeout', 'timeout', 9],
    [{ type: 'gradient', initialMaxConcurrency: 6, queueSize: 2 }, 'gradient', 'gradient', 6],
    [own, 'custom', 'custom', 3],
  ])('%j is %s, written %s, with a limit of %d', (value, type, text, limit) => {
    expect(parseMaxConcurrency(value as MaxConcurrency)).toMatchObject({ type, text });
    expect(limitOf(value)).toBe(limit);
  });

  it('takes undefined options for absent ones', () => {
    expect(limitOf({ type: 'auto', initialMaxConcurrency: undefined, strict: undefined })).toBe(20);
  });

  it('never writes to what it is given', () => {
    const options = Object.freeze({ timeoutMs: 300, maxConcurrency: 7 });
    expect(limitOf(options)).toBe(7);
  });
});

const ADVICE =
  "write a whole number from 1 to 2147483647, 'auto', 'timeout', 'gradient', 'unlimited', { timeoutMs, maxConcurrency }, { type, … }, a limiter or a registered name";

describe('values that are refused, with what would be right', () => {
  it.each<[value: unknown, error: typeof TypeError | typeof RangeError, message: string]>([
    [
      0,
      RangeError,
      "max concurrency 0 would admit nothing; write 'unlimited' for no limit, or a whole number from 1 to 2147483647",
    ],
    ['0', RangeError, `max concurrency "0" would admit nothing`],
    [-3, RangeError, 'max concurrency -3 would admit nothing'],
    [Number.NEGATIVE_INFINITY, RangeError, 'max concurrency -Infinity would admit nothing'],
    [
      Number.NaN,
      RangeError,
      'max concurrency must be a whole number from 1 to 2147483647, got NaN',
    ],
    [Number.POSITIVE_INFINITY, RangeError, 'from 1 to 2147483647, got Infinity'],
    [1.5, RangeError, 'from 1 to 2147483647, got 1.5'],
    [2 ** 31, RangeError, 'from 1 to 2147483647, got 2147483648'],
    ['2147483648', RangeError, 'from 1 to 2147483647, got 2147483648'],
    ['', RangeError, `max concurrency "" is no known limiter; ${ADVICE}`],
    [' 10', RangeError, `max concurrency " 10" is no known limiter; ${ADVICE}`],
    ['1e3', RangeError, `max concurrency "1e3" is no known limiter`],
    ['auto ', RangeError, `max concurrency "auto " is no known limiter`],
    ['constant', RangeError, `max concurrency 'constant' names no number; write the number itself`],
    ['toString', RangeError, `max concurrency "toString" is no known limiter`],
    [{ type: 'nope' }, RangeError, `max concurrency "nope" is no known limiter`],
    [undefined, TypeError, `max concurrency undefined is no limit; ${ADVICE}`],
    [null, TypeError, 'max concurrency null is no limit'],
    [true, TypeError, 'max concurrency true is no limit'],
    [10n, TypeError, 'max concurrency 10n is no limit'],
    [[10], TypeError, 'max concurrency an array of 1 is no limit'],
    [{}, TypeError, 'max concurrency has nothing, but neither timeoutMs nor type; write'],
    [{ maxConcurrency: 5 }, TypeError, 'has maxConcurrency, but neither timeoutMs nor type; write'],
    [{ type: 5 }, TypeError, 'limit.type must be the name of a limiter, got 5'],
    [
      { type: 'unlimited', maxConcurrency: 5 },
      TypeError,
      'unlimited.maxConcurrency is not an option',
    ],
    [
      { type: 'constant' },
      TypeError,
      'constant.maxConcurrency must be a whole number from 1 to 2147483647, got undefined',
    ],
    [{ type: 'auto', strict: 'yes' }, TypeError, 'auto.strict must be true or false, got "yes"'],
    [
      { admits() {} },
      TypeError,
      'limit must be a limiter; missing: started(), refused(), record(), maxConcurrency',
    ],
    [
      { ...own, maxConcurrency: '3' },
      TypeError,
      'limit must be a limiter; missing: maxConcurrency',
    ],
  ])('%p', (value, error, message) => {
    const read = () => parseMaxConcurrency(value as MaxConcurrency);
    expect(read).toThrow(error);
    expect(read).toThrow(message);
  });
});

describe('a registered limiter', () => {
  const taken: (() => void)[] = [];
  afterEach(() => {
    for (const giveBack of taken.splice(0)) giveBack();
  });

  it('is known by its name in any case, and gets its options and what it is built with', () => {
    const seen: unknown[] = [];
    taken.push(
      registerLimiter('Step', (options, given) => {
        seen.push(options, given);
        return own;
      }),
    );
    expect(createLimiter(parseMaxConcurrency({ type: 'STEP', by: 2 }), context)).toBe(own);
    expect(seen).toEqual([{ by: 2 }, context]);
    expect(parseMaxConcurrency('step')).toMatchObject({ type: 'step', text: 'step' });
  });

  it('has to be a limiter', () => {
    taken.push(registerLimiter('broken', () => ({ maxConcurrency: 1 }) as Limiter));
    expect(() => limitOf('broken')).toThrow(
      new TypeError(
        'limiter broken must be a limiter; missing: admits(), started(), refused(), record()',
      ),
    );
  });

  it.each(['auto', 'CONSTANT', 'custom'])('cannot be called %s', (name) => {
    expect(() => registerLimiter(name, () => own)).toThrow(
      new RangeError(`name "${name}" is taken`),
    );
  });

  it.each(['', '10', 'a b', '-x'])('cannot be called %p', (name) => {
    expect(() => registerLimiter(name, () => own)).toThrow(/name must be/);
  });

  it('keeps its name until it is given back', () => {
    const giveBack = registerLimiter('mine', () => own);
    expect(() => registerLimiter('Mine', () => own)).toThrow(
      new RangeError('name "Mine" is taken'),
    );
    giveBack();
    expect(() => parseMaxConcurrency('mine')).toThrow('no known limiter');
    registerLimiter('mine', () => own)();
  });
});

describe('a change from one value to another', () => {
  it.each<[from: unknown, to: unknown, same: boolean]>([
    [5, '6', true],
    [5, 'auto', false],
    ['auto', 'AUTO', true],
    ['auto', { type: 'auto', strict: true }, false],
    [{ type: 'auto', strict: true }, { type: 'auto', strict: true, law: 'documented' }, false],
    [{ timeoutMs: 5 }, 'timeout', true],
    [own, own, true],
    [own, { ...own }, false],
  ])('%j to %j keeps the engine: %p', (from, to, same) => {
    expect(sameEngine(parse(from), parse(to))).toBe(same);
  });
});

/** The law, or the number of a constant one, or `error`. */
const read = (value: string | number): string => {
  try {
    const { type, text } = parseMaxConcurrency(value);
    return type === 'constant' ? text : type;
  } catch {
    return 'error';
  }
};

describe('brpc’s values, as recorded', () => {
  const url = new URL('../vectors/values/max-concurrency.json', import.meta.url);
  const recorded = JSON.parse(readFileSync(url, 'utf8')) as {
    rows: [text: string, type: string, value: string, int: number, atStart: string][];
    integers: { rows: [given: number, type: string, value: string, int: number][] };
    equality: { rows: [value: string, other: string, equal: boolean][] };
  };
  /** Where we answer otherwise on purpose. `docs/limiters.md` says why. */
  const ours: Record<string, string> = {
    '0': 'error',
    '+0': 'error',
    '-1': 'error',
    '-7': 'error',
    '-100': 'error',
    '-2147483648': 'error',
    Unlimited: 'unlimited',
    UNLIMITED: 'unlimited',
    constant: 'error',
    Constant: 'error',
    gradient: 'gradient',
  };
  it.each(recorded.rows)('%j', (text, _type, value, _int, atStart) => {
    const theirs = { constant: value, 'no limiter': 'unlimited' }[atStart] ?? atStart;
    expect(read(text)).toBe(ours[text] ?? theirs);
  });

  it.each(recorded.integers.rows)('the number %d', (given, _type, value) => {
    expect(read(given)).toBe(ours[given] ?? value);
  });

  it.each(recorded.equality.rows)('%j equals %j: %p', (value, other, equal) => {
    expect(parseMaxConcurrency(value).text === other.toLowerCase()).toBe(equal);
  });

  it('differs in nothing that is not in its list', () => {
    const seen = new Set(
      [...recorded.rows, ...recorded.integers.rows].map(([given]) => String(given)),
    );
    expect(Object.keys(ours).filter((value) => !seen.has(value))).toEqual([]);
  });
});
