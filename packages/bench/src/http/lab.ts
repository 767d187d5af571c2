import { setTimeout } from 'node:timers/promises';
import type { Listening, Order, Reading } from './app-child.js';
import { type Arm, bareOf } from './arms.js';
import { Child, closedLoopFromChild, loadFromChild, SERVER_CORE } from './child.js';
import { requestFor, type Workload } from './handlers.js';
import { type Figures, medianOf, middleOf, type Row } from './judge.js';
import type { ClientKind, LoadResult } from './load.js';
import type { Life, Load } from './plan.js';

export interface LabOptions {
  readonly rounds: number;
  /** How long each load is measured. */
  readonly seconds: number;
  /** Hears of each run, as it ends. */
  readonly onRun: (round: number, row: Omit<Row, 'rounds' | 'median'>, figures: Figures) => void;
}

export interface LabResult {
  readonly rows: readonly Row[];
  /** What refusing costs a server that does nothing else. */
  readonly refusals: readonly {
    readonly arm: Refuser;
    readonly client: ClientKind;
    readonly rounds: readonly number[];
    readonly cpuUs: number;
  }[];
  readonly capacities: readonly {
    readonly workload: Workload;
    readonly arm: Arm;
    readonly rounds: readonly number[];
    readonly perSecond: number;
  }[];
}

/** An answer later than this is late, and clients that hang up do it then. */
export const DEADLINE_MS = 500;
/** Enough connections to keep every workload busy, few enough for none to wait long. */
const CAPACITY_CONNECTIONS = 50;
/** Servers that refuse everything, and their clients: what a refusal costs at least. */
const REFUSERS = [
  { arm: 'refuser', client: 'hangUp', perSecond: 3_000 },
  { arm: 'refuser', client: 'oneShot', perSecond: 3_000 },
  { arm: 'nest-refuser', client: 'hangUp', perSecond: 1_000 },
] as const satisfies { arm: Arm; client: ClientKind; perSecond: number }[];
export type Refuser = (typeof REFUSERS)[number]['arm'];
/**
 * Code is warmed up as that of a server in production is, by an overload with kept connections, then one with a
 * connection for each request. Cold, a refusal costs three times as much, and under a handler that is called 200
 * times a second it takes ten seconds to be compiled.
 */
const WARM_UP = { rate: 3_000, durationMs: 1_500 };
const WARM_UP_CLIENTS = ['hangUp', 'oneShot'] as const;
/** A server rests when it uses less than this share of its time. */
const AT_REST = 0.2;
const RESTS_MS = 200;
/** Few answers come to a light load, and its p99 is to be told apart from another's: it is measured longer. */
const LIGHT_LASTS = 2;
/** What comes before each measurement, and is not to count: a load of another kind wants other code compiled. */
const LEAD_MS = 2_000;

/** Runs every life once per round, one after the other, so that what disturbs the machine disturbs all of them. */
export async function runLab(lives: readonly Life[], options: LabOptions): Promise<LabResult> {
  const durationMs = options.seconds * 1_000;
  const found = new Map<string, { row: Omit<Row, 'rounds' | 'median'>; rounds: Figures[] }>();
  const capacities = new Map<string, { workload: Workload; arm: Arm; rounds: number[] }>();
  const refusals = REFUSERS.map((refuser) => ({ ...refuser, rounds: [] as number[] }));
  for (let round = 0; round < options.rounds; round++) {
    for (const refuser of refusals) refuser.rounds.push(await refusalUs(refuser, durationMs));
    for (const { workload, arm, loads } of lives) {
      const bare = bareOf(arm);
      const key = `${workload} ${bare}`;
      const known = capacities.get(key) ?? { workload, arm: bare, rounds: [] };
      capacities.set(key, known);
      if (known.rounds.length <= round) {
        known.rounds.push(await capacityOf(workload, bare, durationMs));
      }
      const capacity = known.rounds[round] as number;
      await serving(arm, workload, async (port) => {
        for (const load of loads) {
          const figures = figuresOf(
            await offer(workload, port, load, capacity, durationMs),
            capacity,
          );
          const row = { workload, arm, ...load };
          const name = `${key} ${arm} ${load.factor} ${load.client}`;
          const entry = found.get(name) ?? { row, rounds: [] };
          found.set(name, entry);
          entry.rounds.push(figures);
          options.onRun(round, row, figures);
        }
      });
    }
  }
  return {
    rows: [...found.values()].map(({ row, rounds }) => ({
      ...row,
      rounds,
      median: medianOf(rounds),
    })),
    refusals: refusals.map((each) => ({ ...each, cpuUs: middleOf(each.rounds) })),
    capacities: [...capacities.values()].map((capacity) => ({
      ...capacity,
      perSecond: middleOf(capacity.rounds),
    })),
  };
}

/** Answers per second of a bare server that always has something to do. */
async function capacityOf(workload: Workload, arm: Arm, durationMs: number): Promise<number> {
  return serving(arm, workload, async (port) => {
    const { perSecond } = await closedLoopFromChild({
      ...requestFor(workload),
      port,
      connections: CAPACITY_CONNECTIONS,
      warmUpMs: LEAD_MS,
      durationMs,
    });
    return perSecond;
  });
}

/** CPU time of a refusal by a server that does nothing else, in microseconds, at a rate that leaves the thread little rest. */
async function refusalUs(
  { arm, client, perSecond: rate }: (typeof REFUSERS)[number],
  durationMs: number,
): Promise<number> {
  return serving(arm, 'cpu', async (port, server) => {
    const before = await server.ask<Reading>({});
    const { refused } = await loadFromChild({
      ...requestFor('cpu'),
      port,
      client,
      rate,
      durationMs,
    });
    const after = await server.ask<Reading>({});
    return ((after.cpuSeconds - before.cpuSeconds) / refused) * 1e6;
  });
}

async function serving<T>(
  arm: Arm,
  workload: Workload,
  use: (port: number, server: Child) => Promise<T>,
): Promise<T> {
  const server = new Child(new URL('./app-child.ts', import.meta.url), [arm], SERVER_CORE);
  try {
    const { port } = await server.ask<Listening>();
    const brief = requestFor(workload).method === 'POST' ? 'briefPost' : 'brief';
    for (const client of WARM_UP_CLIENTS) {
      await loadFromChild({ ...requestFor(brief), ...WARM_UP, port, client });
    }
    await rest(server);
    await server.ask<Reading>({ measure: true } satisfies Order);
    return await use(port, server);
  } finally {
    await server.close();
  }
}

/** Waits until the server has worked off what it was sent: the accept queue is long. */
async function rest(server: Child): Promise<void> {
  for (let before = await server.ask<Reading>({}); ; ) {
    await setTimeout(RESTS_MS);
    const now = await server.ask<Reading>({});
    if (now.cpuSeconds - before.cpuSeconds < (AT_REST * RESTS_MS) / 1_000) return;
    before = now;
  }
}

function offer(
  workload: Workload,
  port: number,
  { factor, client }: Load,
  capacity: number,
  durationMs: number,
): Promise<LoadResult> {
  return loadFromChild({
    ...requestFor(workload),
    port,
    client,
    rate: factor * capacity,
    deadlineMs: DEADLINE_MS,
    warmUpMs: LEAD_MS,
    durationMs: (factor < 1 ? LIGHT_LASTS : 1) * durationMs,
  });
}

function figuresOf(result: LoadResult, capacity: number): Figures {
  const { offered, seconds, inTime, refused, late, errors, answers, refusals } = result;
  return {
    goodput: inTime / seconds / capacity,
    inTime: inTime / offered,
    refused: refused / offered,
    late: late / offered,
    errors: errors / offered,
    p50Ms: answers.p50,
    p99Ms: answers.p99,
    refusalP50Ms: refusals.p50,
    refusalP99Ms: refusals.p99,
    lagP99Ms: result.sendingLag.p99,
  };
}
