import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ClosedLoopOptions, ClosedLoopResult, LoadOptions, LoadResult } from './load.js';

/** The cores of the server and of its clients, where processes are pinned. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

let pinned = false;

/**
 * From now on children get a core of their own each and the highest priority: for a machine that others use too. Needs
 * Linux, `taskset`, `nice`, two cores, and the right to use them.
 */
export function pinChildren(): void {
  pinned = true;
}

/** Another process that answers each message with one. Ends with this one, or when told. */
export class Child {
  readonly #process: ChildProcess;

  constructor(file: URL, args: readonly string[], core: number) {
    const node = [process.execPath, ...process.execArgv];
    const [execPath, ...execArgv] = (
      pinned ? ['nice', '-n', '-20', 'taskset', '-c', `${core}`, ...node] : node
    ) as [string, ...string[]];
    this.#process = fork(fileURLToPath(file), args, {
      execPath,
      execArgv,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  async ask<Answer>(question?: object): Promise<Answer> {
    const gone = new AbortController();
    const exit = once(this.#process, 'exit', { signal: gone.signal }).then(() => {
      throw new Error(`the child ended before it answered`);
    });
    const answer = once(this.#process, 'message', { signal: gone.signal });
    if (question !== undefined) this.#process.send(question);
    try {
      const [message] = (await Promise.race([answer, exit])) as [Answer];
      return message;
    } finally {
      exit.catch(() => undefined);
      answer.catch(() => undefined);
      gone.abort();
    }
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, 'exit');
    this.#process.kill();
    await exit;
  }
}

/** Offers a load from a process of its own, so that neither side waits for the other's loop. */
export async function loadFromChild(options: LoadOptions): Promise<LoadResult> {
  const [results] = await loadsFromChild([options], 1);
  return results?.[0] as LoadResult;
}

/** Offers several loads by turns. */
export async function loadsFromChild(
  loads: readonly LoadOptions[],
  turns: number,
): Promise<LoadResult[][]> {
  return fromChild<LoadResult[][]>({ open: loads, turns });
}

/** Runs a closed loop in a process of its own. */
export async function closedLoopFromChild(options: ClosedLoopOptions): Promise<ClosedLoopResult> {
  return fromChild<ClosedLoopResult>({ closed: options });
}

async function fromChild<Result>(job: object): Promise<Result> {
  const child = new Child(new URL('./load-child.ts', import.meta.url), [], LOAD_CORE);
  try {
    return await child.ask<Result>(job);
  } finally {
    await child.close();
  }
}
