import { readFileSync } from 'node:fs';
import type { DistributionSpec } from './distribution.js';
import type { OverTimeSpec } from './over-time.js';

/** One load on one plant, with what must hold. The format is described in `scenarios/README.md`. */
export interface Scenario {
  readonly format: 1;
  readonly row: number;
  readonly name: string;
  readonly durationS: number;
  readonly measureS: readonly (readonly [fromS: number, toS: number])[];
  readonly stages: readonly Stage[];
  /** Arrivals per second. */
  readonly rate: OverTimeSpec;
  /** Calls per second that the plant can finish. */
  readonly capacity: OverTimeSpec;
  /** An answer after it is late. A list gives each share of the calls its own. */
  readonly deadlineMs: number | readonly { readonly ms: number; readonly share: number }[];
  /** True if a call's deadline is told to the engine. */
  readonly carry?: boolean;
  readonly degrade?: { readonly above: number; readonly slope: number };
  readonly failures?: {
    readonly share: number;
    readonly latency?: 'fast';
    readonly latencyMs?: number;
  };
  readonly retries?: { readonly times: number; readonly afterMs: readonly [number, number] };
  readonly classes?: readonly { readonly name: PriorityClass; readonly share: number }[];
  readonly expect: readonly Expectation[];
}

export type PriorityClass = 'critical' | 'default' | 'sheddable';

export interface Stage {
  readonly kind: 'servers' | 'delay';
  readonly count?: OverTimeSpec;
  readonly serviceMs: DistributionSpec;
}

/** What must hold in one window: `measure` is its place in `measureS`. */
export interface Expectation {
  readonly measure: number;
  readonly class?: PriorityClass;
  readonly refusedMax?: number;
  readonly goodputMin?: number;
  readonly p99Max?: number;
  readonly limitDriftMax?: number;
}

/** Reads one file. Errors name the file, the field and what would be right. */
export function readScenario(path: string): Scenario {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(
      `${path}: cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`,
      { cause: error },
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${path}: is not JSON (${(error as Error).message})`, { cause: error });
  }
  return parseScenario(value, path);
}

/** Checks a value against the format; every unknown field and every value out of range is refused by name. */
export function parseScenario(value: unknown, at = 'scenario'): Scenario {
  const top = fields(value, at, {
    format: isOne,
    row: isCount,
    name: isText,
    durationS: isPositive,
    measureS: isWindows,
    stages: listOf(isStage),
    rate: overTime(0),
    capacity: overTime(0),
    deadlineMs: isDeadline,
    expect: listOf(isExpectation),
    'carry?': isFlag,
    'degrade?': isDegrade,
    'failures?': isFailures,
    'retries?': isRetries,
    'classes?': listOf(isClass),
  });
  const scenario = top as unknown as Scenario;
  for (const [from, to] of scenario.measureS) {
    if (to > scenario.durationS)
      fail(`${at}.measureS`, `end within durationS ${scenario.durationS}`, [from, to]);
  }
  scenario.expect.forEach((expectation, i) => {
    const where = `${at}.expect[${i}]`;
    if (scenario.measureS[expectation.measure] === undefined) {
      fail(
        `${where}.measure`,
        `be the place of a window, 0 to ${scenario.measureS.length - 1}`,
        expectation.measure,
      );
    }
    const { class: name } = expectation;
    if (name === undefined) return;
    if (!(scenario.classes ?? []).some((one) => one.name === name))
      fail(`${where}.class`, 'be one of classes', name);
    if (
      expectation.goodputMin !== undefined ||
      expectation.limitDriftMax !== undefined ||
      expectation.p99Max !== undefined
    ) {
      fail(where, 'ask a class for refusedMax only', Object.keys(expectation).join(', '));
    }
  });
  if (scenario.classes !== undefined) sumsToOne(`${at}.classes`, scenario.classes);
  if (typeof scenario.deadlineMs !== 'number') sumsToOne(`${at}.deadlineMs`, scenario.deadlineMs);
  return scenario;
}

type Check = (value: unknown, at: string) => void;

function fail(at: string, must: string, got: unknown): never {
  throw new Error(`${at} must ${must}, got ${got === undefined ? 'nothing' : JSON.stringify(got)}`);
}

/** Exactly these fields; a name that ends in `?` may be missing. */
function fields(
  value: unknown,
  at: string,
  checks: Readonly<Record<string, Check>>,
): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    fail(at, 'be an object', value);
  const object = value as Record<string, unknown>;
  const names = Object.keys(checks).map((name) => name.replace('?', ''));
  for (const name of Object.keys(object)) {
    if (!names.includes(name))
      throw new Error(`${at}.${name} is not a field; known: ${names.join(', ')}`);
  }
  for (const [key, check] of Object.entries(checks)) {
    const name = key.replace('?', '');
    if (object[name] !== undefined) check(object[name], `${at}.${name}`);
    else if (name === key) throw new Error(`${at}.${name} is missing`);
  }
  return object;
}

function number(must: string, holds: (value: number) => boolean): Check {
  return (value, at) => {
    if (typeof value !== 'number' || !Number.isFinite(value) || !holds(value))
      fail(at, must, value);
  };
}
const isOne = number('be 1', (v) => v === 1);
const isCount = number('be a whole number from 0 up', (v) => Number.isInteger(v) && v >= 0);
const isPositive = number('be a number above 0', (v) => v > 0);
const isNatural = number('be a number from 0 up', (v) => v >= 0);
const isShare = number('be a share from 0 to 1', (v) => v >= 0 && v <= 1);

const isText: Check = (value, at) => {
  if (typeof value !== 'string' || value === '') fail(at, 'be a text', value);
};
const isFlag: Check = (value, at) => {
  if (typeof value !== 'boolean') fail(at, 'be true or false', value);
};

function listOf(check: Check): Check {
  return (value, at) => {
    if (!Array.isArray(value) || value.length === 0)
      fail(at, 'be a list with at least one entry', value);
    (value as unknown[]).forEach((one, i) => {
      check(one, `${at}[${i}]`);
    });
  };
}

const isWindows: Check = listOf((value, at) => {
  const [from, to] = Array.isArray(value) && value.length === 2 ? (value as unknown[]) : [];
  if (typeof from !== 'number' || typeof to !== 'number' || !(from >= 0 && to > from)) {
    fail(at, 'be [from, to) in seconds', value);
  }
});

function overTime(least: number): Check {
  const points = (value: unknown, at: string): void => {
    let last = -Infinity;
    listOf((one, where) => {
      const [s, v] = Array.isArray(one) && one.length === 2 ? (one as unknown[]) : [];
      if (
        typeof s !== 'number' ||
        typeof v !== 'number' ||
        !(s > last && s >= 0) ||
        !(v >= least) ||
        v === Infinity
      ) {
        fail(where, `be [second, value from ${least} up], later than the one before`, one);
      }
      last = s;
    })(value, at);
  };
  return (value, at) => {
    if (typeof value === 'number')
      return number(`be a number from ${least} up`, (v) => v >= least)(value, at);
    if (typeof value === 'object' && value !== null && 'ramp' in value)
      fields(value, at, { ramp: points });
    else {
      const spec = fields(value, at, { steps: points, 'cycle?': isPositive });
      const steps = spec.steps as [number, number][];
      const end = (steps.at(-1) as [number, number])[0];
      if (typeof spec.cycle === 'number' && spec.cycle <= end)
        fail(`${at}.cycle`, `be longer than its last step at ${end}`, spec.cycle);
    }
  };
}

const isDistribution: Check = (value, at) => {
  const kind = (value as { dist?: unknown } | null)?.dist;
  const checks = typeof kind === 'string' ? DISTRIBUTIONS[kind] : undefined;
  if (checks === undefined)
    fail(`${at}.dist`, `be one of ${Object.keys(DISTRIBUTIONS).join(', ')}`, kind);
  fields(value, at, { dist: isText, ...checks });
};
const DISTRIBUTIONS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  fixed: { mean: overTime(0) },
  exp: { mean: isPositive },
  lognormal: { mean: isPositive, cv: isPositive },
  bimodal: { fast: isNatural, slow: isPositive, share: isShare },
  pareto: { min: isPositive, alpha: number('be a number above 1', (v) => v > 1), max: isPositive },
};

const isStage: Check = (value, at) => {
  const kind = (value as { kind?: unknown } | null)?.kind;
  if (kind === 'delay') fields(value, at, { kind: isText, serviceMs: isDistribution });
  else if (kind === 'servers')
    fields(value, at, { kind: isText, count: overTime(0), serviceMs: isDistribution });
  else fail(`${at}.kind`, 'be servers or delay', kind);
};

const isDeadline: Check = (value, at) => {
  if (Array.isArray(value))
    return listOf((one, where) => void fields(one, where, { ms: isPositive, share: isShare }))(
      value,
      at,
    );
  isPositive(value, at);
};
const isDegrade: Check = (value, at) =>
  void fields(value, at, { above: isPositive, slope: isNatural });
const isFailures: Check = (value, at) => {
  const { latency, latencyMs } = fields(value, at, {
    share: isShare,
    'latency?': (v, where) => {
      if (v !== 'fast') fail(where, 'be "fast"', v);
    },
    'latencyMs?': isNatural,
  });
  if ((latency === undefined) === (latencyMs === undefined))
    fail(at, 'have either latency or latencyMs', value);
};
const isRetries: Check = (value, at) => {
  fields(value, at, {
    times: isCount,
    afterMs: (v, where) => {
      const [from, to] = Array.isArray(v) && v.length === 2 ? (v as unknown[]) : [];
      if (typeof from !== 'number' || typeof to !== 'number' || !(from >= 0 && to >= from))
        fail(where, 'be [from, to] in ms', v);
    },
  });
};
const isClassName: Check = (value, at) => {
  if (value !== 'critical' && value !== 'default' && value !== 'sheddable')
    fail(at, 'be critical, default or sheddable', value);
};
const isClass: Check = (value, at) => void fields(value, at, { name: isClassName, share: isShare });
const isExpectation: Check = (value, at) => {
  fields(value, at, {
    measure: isCount,
    'class?': isClassName,
    'refusedMax?': isNatural,
    'goodputMin?': isNatural,
    'p99Max?': isPositive,
    'limitDriftMax?': isNatural,
  });
};

function sumsToOne(at: string, list: readonly { readonly share: number }[]): void {
  const sum = list.reduce((total, one) => total + one.share, 0);
  if (Math.abs(sum - 1) > 1e-6) fail(at, 'have shares that sum to 1', sum);
}
