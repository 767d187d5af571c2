import { setTimeout } from 'node:timers/promises';
import type { Listening, Order, Reading } from './app-child.js';
import type { Arm } from './arms.js';
import { Child, closedLoopFromChild, loadFromChild, loadsFromChild, SERVER_CORE } from './child.js';
import { requestFor, type Workload } from './handlers.js';
import { type Figures, medianOf, middleOf, type Row } from './judge.js';
import type { ClientKind, LoadOptions, LoadResult } from './load.js';
import { type Group, groupsOf, isLight, type Life, type Load } from './plan.js';

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
/**
 * A light load differs from the bare server's by little, and the machine by more from one minute to the next: all the servers
 * that meet it are up at once, and are loaded by turns.
 */
const LIGHT_TURNS = 6;
/** What comes before each measurement, and is not to count: a load of another kind wants other code compiled. */
const LEAD_MS = 2_000;
/** The same of what is measured often. */
const SHORT_LEAD_MS = 400;
/** A measurement of capacity, as a share of that of a load. */
const CAPACITY_LASTS = 0.5;

/** The bare server that the others of a group are compared with. */
const BESIDE = 'beside';

type Rounds = { row: Omit<Row, 'rounds' | 'median'>; rounds: Figures[] };

/** Runs every life once per round, one after the other, so that what disturbs the machine disturbs all of them. */
export async function runLab(lives: readonly Life[], options: LabOptions): Promise<LabResult> {
  const durationMs = options.seconds * 1_000;
  const found = new Map<string, Rounds>();
  const capacities = new Map<string, { workload: Workload; arm: Arm; rounds: number[] }>();
  const refusals = REFUSERS.map((refuser) => ({ ...refuser, rounds: [] as number[] }));
  for (let round = 0; round < options.rounds; round++) {
    const note: Note = (row, figures) => {
      const name = `${row.workload} ${row.arm} ${row.factor} ${row.client}`;
      const entry = found.get(name) ?? { row, rounds: [] };
      found.set(name, entry);
      entry.rounds.push(figures);
      options.onRun(round, row, figures);
    };
    for (const refuser of refusals) refuser.rounds.push(await refusalUs(refuser, durationMs));
    for (const group of groupsOf(lives)) {
      const { workload, bare } = group;
      const key = `${workload} ${bare}`;
      const known = capacities.get(key) ?? { workload, arm: bare, rounds: [] };
      capacities.set(key, known);
      known.rounds.push(await runGroup(group, durationMs, note));
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

type Note = (row: Omit<Row, 'rounds' | 'median'>, figures: Figures) => void;

/**
 * The light loads first, by turns; then each server under its overloads, with the capacity of the bare one measured
 * before and after each: what the machine gives changes from minute to minute.
 *
 * @returns the median capacity
 */
async function runGroup(group: Group, durationMs: number, note: Note): Promise<number> {
  const { workload, bare, lives } = group;
  const servers = new Map<string, Serving>();
  const up = async (arm: Arm, name: string = arm): Promise<Serving> => {
    const server = servers.get(name) ?? (await serve(arm, workload));
    servers.set(name, server);
    return server;
  };
  const capacities: number[] = [];
  const capacityNow = async (): Promise<number> => {
    const { port } = await up(bare, BESIDE);
    const capacity = await capacityOf(workload, port, CAPACITY_LASTS * durationMs);
    capacities.push(capacity);
    return capacity;
  };
  try {
    let before = await capacityNow();
    for (const { load, arms } of group.light) {
      const loads: LoadOptions[] = [];
      for (const arm of arms) {
        const { port } = await up(arm, arm === bare ? BESIDE : arm);
        loads.push(loadOf(workload, port, load, before, durationMs, SHORT_LEAD_MS));
      }
      const results = await loadsFromChild(loads, LIGHT_TURNS);
      for (const [i, turns] of results.entries()) {
        const figures = medianOf(turns.map((turn) => figuresOf(turn, before)));
        note({ workload, arm: arms[i] as Arm, ...load }, figures);
      }
    }
    for (const { arm, loads } of lives) {
      for (const load of loads.filter((each) => !isLight(each))) {
        const { port, child } = await up(arm);
        const result = await loadFromChild(
          loadOf(workload, port, load, before, durationMs, LEAD_MS),
        );
        await rest(child); // what it has left to do would take its time from the other
        const after = await capacityNow();
        note({ workload, arm, ...load }, figuresOf(result, (before + after) / 2));
        before = after;
      }
      await servers.get(arm)?.child.close();
      servers.delete(arm);
    }
    return middleOf(capacities);
  } finally {
    for (const { child } of servers.values()) await child.close();
  }
}

/** Answers per second of a server that always has something to do. */
async function capacityOf(workload: Workload, port: number, durationMs: number): Promise<number> {
  const { perSecond } = await closedLoopFromChild({
    ...requestFor(workload),
    port,
    connections: CAPACITY_CONNECTIONS,
    warmUpMs: SHORT_LEAD_MS,
    durationMs,
  });
  return perSecond;
}

/** CPU time of a refusal by a server that does nothing else, in microseconds, at a rate that leaves the thread little rest. */
async function refusalUs(
  { arm, client, perSecond: rate }: (typeof REFUSERS)[number],
  durationMs: number,
): Promise<number> {
  const { child, port } = await serve(arm, 'cpu');
  try {
    const before = await child.ask<Reading>({});
    const { refused } = await loadFromChild({
      ...requestFor('cpu'),
      port,
      client,
      rate,
      durationMs,
    });
    const after = await child.ask<Reading>({});
    return ((after.cpuSeconds - before.cpuSeconds) / refused) * 1e6;
  } finally {
    await child.close();
  }
}

/** A server in a process of its own. */
interface Serving {
  readonly child: Child;
  readonly port: number;
}

/** Starts a server and warms it up. */
async function serve(arm: Arm, workload: Workload): Promise<Serving> {
  const server = new Child(new URL('./app-child.ts', import.meta.url), [arm], SERVER_CORE);
  try {
    const { port } = await server.ask<Listening>();
    const brief = requestFor(workload).method === 'POST' ? 'briefPost' : 'brief';
    for (const client of WARM_UP_CLIENTS) {
      await loadFromChild({ ...requestFor(brief), ...WARM_UP, port, client });
    }
    await rest(server);
    await server.ask<Reading>({ measure: true } satisfies Order);
    return { child: server, port };
  } catch (error) {
    await server.close();
    throw error;
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

function loadOf(
  workload: Workload,
  port: number,
  { factor, client }: Load,
  capacity: number,
  durationMs: number,
  warmUpMs: number,
): LoadOptions {
  return {
    ...requestFor(workload),
    port,
    client,
    rate: factor * capacity,
    deadlineMs: DEADLINE_MS,
    warmUpMs,
    durationMs,
  };
}

function figuresOf(result: LoadResult, capacity: number): Figures {
  const { offered, inTime, refused, late, errors, answers, refusals } = result;
  return {
    goodput: result.perSecond / capacity,
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
