import { type Arm, bareOf } from './arms.js';
import type { Workload } from './handlers.js';
import type { ClientKind } from './load.js';

/** One load on one arm. */
export interface Load {
  /** Offered, as a multiple of the measured capacity. */
  readonly factor: number;
  readonly client: ClientKind;
}

/** A server's life: it is started, warmed up, and meets its loads one after the other, the light ones first. */
export interface Life {
  readonly workload: Workload;
  readonly arm: Arm;
  readonly loads: readonly Load[];
}

export interface PlanOptions {
  readonly quick: boolean;
  readonly workloads?: readonly Workload[] | undefined;
  readonly arms?: readonly Arm[] | undefined;
  readonly factors?: readonly number[] | undefined;
  readonly clients?: readonly ClientKind[] | undefined;
}

/** The workloads that have pass marks of their own. */
export const JUDGED: readonly Workload[] = ['cpu', 'async', 'mixed', 'post', 'later'];
const ALL: readonly Workload[] = [...JUDGED, 'stream'];

const loads = (factors: readonly number[], ...clients: ClientKind[]): Load[] =>
  factors.flatMap((factor) => clients.map((client) => ({ factor, client })));

const LIGHT = loads([0.5, 0.8], 'patient');
/** The first overload of a life: a limit that learns has its first trial in it. */
const FIRST = loads([1.5], 'hangUp');
const PEER = loads([3], 'hangUp');
const OVERLOADS = [...loads([3], 'hangUp', 'oneShot'), ...loads([6], 'hangUp', 'oneShot')];

/** What each arm meets in a full run. */
const FULL: Partial<Record<Arm, readonly Load[]>> = {
  none: PEER,
  auto: [
    ...LIGHT,
    ...FIRST,
    ...loads([3], 'patient', 'hangUp', 'oneShot'),
    ...loads([6], 'hangUp', 'oneShot'),
  ],
  timeout: [...loads([0.8], 'patient'), ...FIRST, ...PEER],
  fixed: [...loads([0.8], 'patient'), ...FIRST, ...PEER],
  protect: [...loads([0.8], 'patient'), ...FIRST, ...OVERLOADS],
  oracle: [...loads([0.8], 'patient'), ...FIRST, ...OVERLOADS],
  'toobusy-js': PEER,
  'overload-protection': PEER,
  'under-pressure': PEER,
};

const OTHER_FRAMEWORKS = [...loads([0.8], 'patient'), ...FIRST, ...loads([3, 6], 'hangUp')];

/** Koa and Nest share the mechanism: one workload shows that it reaches them. */
const FULL_CPU: Partial<Record<Arm, readonly Load[]>> = {
  ...FULL,
  'koa-auto': OTHER_FRAMEWORKS,
  'nest-auto': OTHER_FRAMEWORKS,
  'nest-front': OTHER_FRAMEWORKS,
};

/** Calls that wait together work together: what each limit gives in goodput it takes in quick refusals. */
const FULL_MIXED: Partial<Record<Arm, readonly Load[]>> = {
  ...FULL,
  'fixed-4': PEER,
  'fixed-8': PEER,
  'fixed-40': PEER,
};

/** A chunked answer out of few slots: a downstream again, and answers that take their time to end. */
const FULL_STREAM: Partial<Record<Arm, readonly Load[]>> = {
  none: PEER,
  auto: [
    ...loads([0.8], 'patient'),
    ...FIRST,
    ...loads([3], 'hangUp', 'oneShot'),
    ...loads([6], 'hangUp'),
  ],
  timeout: [...loads([0.8], 'patient'), ...FIRST, ...PEER],
  'toobusy-js': PEER,
  'overload-protection': PEER,
};

const FULL_OF: Partial<Record<Workload, Partial<Record<Arm, readonly Load[]>>>> = {
  cpu: FULL_CPU,
  mixed: FULL_MIXED,
  stream: FULL_STREAM,
};

const QUICK: Partial<Record<Arm, readonly Load[]>> = {
  auto: [...loads([0.8], 'patient'), ...loads([3, 6], 'hangUp')],
  protect: [...loads([3], 'oneShot'), ...loads([6], 'hangUp')],
};

/** Lives that are compared with the same bare server. */
export interface Group {
  readonly workload: Workload;
  readonly bare: Arm;
  readonly lives: readonly Life[];
  /** The light loads, and who meets each: the bare server among them. */
  readonly light: readonly { readonly load: Load; readonly arms: readonly Arm[] }[];
}

export function isLight({ factor }: Load): boolean {
  return factor < 1;
}

export function groupsOf(lives: readonly Life[]): Group[] {
  const groups = new Map<string, Life[]>();
  for (const life of lives) {
    const key = `${life.workload} ${bareOf(life.arm)}`;
    groups.set(key, [...(groups.get(key) ?? []), life]);
  }
  return [...groups.values()].map((group) => {
    const { workload, arm } = group[0] as Life;
    const bare = bareOf(arm);
    const light = new Map<string, { load: Load; arms: Set<Arm> }>();
    for (const life of group) {
      for (const load of life.loads.filter(isLight)) {
        const key = `${load.factor} ${load.client}`;
        const entry = light.get(key) ?? { load, arms: new Set([bare]) };
        light.set(key, entry);
        entry.arms.add(life.arm);
      }
    }
    return {
      workload,
      bare,
      lives: group,
      light: [...light.values()].map(({ load, arms }) => ({ load, arms: [...arms] })),
    };
  });
}

/** Which server meets which loads. A bare server meets the light ones of the others in any case. */
export function planOf(options: PlanOptions): Life[] {
  const { quick, workloads = quick ? ['cpu', 'async', 'mixed'] : ALL } = options;
  return workloads.flatMap((workload) => {
    const whole = quick ? QUICK : (FULL_OF[workload] ?? FULL);
    const arms = options.arms ?? (Object.keys(whole) as Arm[]);
    return arms.map((arm) => ({ workload, arm, loads: loadsOf(whole[arm], options) }));
  });
}

function loadsOf(planned: readonly Load[] | undefined, options: PlanOptions): readonly Load[] {
  const { factors, clients } = options;
  if (factors !== undefined || clients !== undefined || planned === undefined) {
    return loads(factors ?? [0.8, 3, 6], ...(clients ?? (['hangUp'] as const)));
  }
  return planned;
}
