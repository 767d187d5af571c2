import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';

/**
 * The services that are put under load: CPU at once; a downstream of few slots; a wait, then CPU; a JSON
 * body, then CPU; CPU behind an `await` of nothing; a chunked answer; and a little CPU, with and without a
 * body, for warming up.
 */
export const WORKLOADS = [
  'cpu',
  'async',
  'mixed',
  'post',
  'later',
  'stream',
  'brief',
  'briefPost',
] as const;
export type Workload = (typeof WORKLOADS)[number];

/** How a workload is asked. */
export interface WorkloadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
}

type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

const CPU_MS = 5;
const SLOTS = 10;
const SLOT_MS = 20;
const MIXED_WAIT_MS = 10;
const MIXED_CPU_MS = 4;
const STREAM_CHUNKS = 5;
const STREAM_GAP_MS = 4;
const BRIEF_MS = 0.3;

/**
 * What a workload could do on a machine of its own, per second, if nothing else cost anything; Infinity
 * where there is no such number. Measured capacity is to reach 0.9 of it.
 */
export const IDEAL_PER_SECOND: Readonly<Record<Workload, number>> = {
  cpu: 1_000 / CPU_MS,
  async: (SLOTS * 1_000) / SLOT_MS,
  mixed: 1_000 / MIXED_CPU_MS,
  post: 1_000 / CPU_MS,
  later: 1_000 / CPU_MS,
  stream: Number.POSITIVE_INFINITY,
  brief: Number.POSITIVE_INFINITY,
  briefPost: Number.POSITIVE_INFINITY,
};

export function requestFor(workload: Workload): WorkloadRequest {
  const path = `/${workload}`;
  return workload === 'post' || workload === 'briefPost'
    ? { method: 'POST', path, body: JSON.stringify({ items: 'x'.repeat(1_000) }) }
    : { method: 'GET', path };
}

/** A handler for each workload; those with a body expect it to have been parsed. Slots are per set of handlers. */
export function createHandlers(): Readonly<Record<Workload, Handler>> {
  const slots = new Slots(SLOTS);
  return {
    cpu: (_req, res) => burnAndAnswer(res),
    post: (_req, res) => burnAndAnswer(res),
    later: async (_req, res) => {
      await Promise.resolve();
      burnAndAnswer(res);
    },
    async: async (_req, res) => {
      await slots.use(() => sleep(SLOT_MS));
      res.end('ok');
    },
    mixed: async (_req, res) => {
      await sleep(MIXED_WAIT_MS);
      burn(MIXED_CPU_MS);
      res.end('ok');
    },
    stream: async (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain' });
      for (let i = 0; i < STREAM_CHUNKS; i++) {
        await slots.use(() => sleep(STREAM_GAP_MS));
        res.write('x'.repeat(1_000));
      }
      res.end();
    },
    brief,
    briefPost: brief,
  };
}

function brief(_req: IncomingMessage, res: ServerResponse): void {
  burn(BRIEF_MS);
  res.end('ok');
}

function burnAndAnswer(res: ServerResponse): void {
  burn(CPU_MS);
  res.end('ok');
}

/** A downstream that serves so many at a time, the others in order. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  async use(work: () => Promise<void>): Promise<void> {
    if (this.#free > 0) this.#free--;
    else {
      await new Promise<void>((go) => {
        this.#waiting.push(go);
      });
    }
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Keeps the thread busy for so many milliseconds of the clock. */
export function burn(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
