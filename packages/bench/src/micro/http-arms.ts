import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The servers of `http-arm.mjs`. */
export const HTTP_ARMS = [
  'bare',
  'express-rate-limit',
  "limit('auto')",
  'limit, all skipped',
  'protect(server)',
  'refused by limit',
  'refused by protect(server)',
] as const;
export type HttpArm = (typeof HTTP_ARMS)[number];

/** A keep-alive connection asks for the next when it has its answer: one at a time, and a loop that never sleeps. */
export const CONNECTIONS = [1, 16] as const;

export interface HttpCosts {
  /** Processor time of the server per request in microseconds, a figure for each round; by connections, then by arm. */
  readonly cpuUs: Readonly<Record<string, Readonly<Record<HttpArm, readonly number[]>>>>;
  /** What the heap of `limit('auto')` had grown by after so many requests more, in bytes per request. */
  readonly grown: readonly { readonly requests: number; readonly bytes: number }[];
}

/** Until the compiler is done with most of it: its time is the process's, too. */
const WARM_UP = 12_000;
/** After a change of the number of connections. */
const SETTLE = 500;
/** Until then the compiler allots more than requests could. */
const GROWTH_WARM_UP = 30_000;
/** Of two lengths: what grows with requests shows in both, what is allotted once fades. */
const GROWTH_REQUESTS = [15_000, 45_000] as const;

/**
 * All servers stand at once, each a process of its own, and are asked in turn: what else the machine does falls on
 * all alike, and an idle server costs nothing.
 */
export async function measureHttp(rounds: number, requests: number): Promise<HttpCosts> {
  const load = start('http-load.mjs', []);
  const servers = await Promise.all(
    HTTP_ARMS.map(async (name) => {
      const child = start('http-arm.mjs', [name]);
      const [{ port }] = (await once(child, 'message')) as [{ port: number }];
      return { name, child, port };
    }),
  );
  const drive = async (name: HttpArm, port: number, connections: number, count: number) => {
    load.send({ port, connections, requests: count });
    const [{ statuses }] = (await once(load, 'message')) as [{ statuses: Record<string, number> }];
    const wanted = name.startsWith('refused') ? '503' : '200';
    if (statuses[wanted] !== count) {
      throw new Error(`${name} answered ${JSON.stringify(statuses)}, not ${wanted} each time`);
    }
  };

  try {
    for (const { name, port } of servers) await drive(name, port, 16, WARM_UP);
    const cpuUs: Record<string, Record<HttpArm, number[]>> = {};
    for (const connections of CONNECTIONS) {
      const figures = Object.fromEntries(HTTP_ARMS.map((name) => [name, [] as number[]]));
      cpuUs[connections] = figures as Record<HttpArm, number[]>;
      for (const { name, port } of servers) await drive(name, port, connections, SETTLE);
      for (let round = 0; round < rounds; round++) {
        for (const { name, child, port } of servers) {
          const before = await used(child, false);
          await drive(name, port, connections, requests);
          const after = await used(child, false);
          figures[name]?.push((after.cpuUs - before.cpuUs) / requests);
        }
      }
    }
    return { cpuUs, grown: await growth() };
  } finally {
    for (const { child } of servers) child.disconnect();
    load.disconnect();
  }

  async function growth(): Promise<HttpCosts['grown']> {
    const { name, child, port } = servers[
      HTTP_ARMS.indexOf("limit('auto')")
    ] as (typeof servers)[0];
    await drive(name, port, 4, GROWTH_WARM_UP);
    const grown = [];
    for (const length of GROWTH_REQUESTS) {
      const before = await used(child, true);
      await drive(name, port, 4, length);
      const after = await used(child, true);
      grown.push({ requests: length, bytes: (after.heapBytes - before.heapBytes) / length });
    }
    return grown;
  }
}

function start(file: string, args: readonly string[]): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return fork(path, args, { execArgv: ['--expose-gc'] });
}

async function used(
  child: ChildProcess,
  collect: boolean,
): Promise<{ cpuUs: number; heapBytes: number }> {
  child.send({ collect });
  const [usage] = (await once(child, 'message')) as [{ cpuUs: number; heapBytes: number }];
  return usage;
}
