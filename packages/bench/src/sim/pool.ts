import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { RunFigures } from './simulate.js';
import type { Job, JobResult } from './worker.js';

interface Waiting {
  readonly job: Job;
  readonly done: (result: number | RunFigures) => void;
  readonly failed: (error: Error) => void;
}

/** A few processes that run jobs, at a low priority. */
export class Pool {
  readonly #idle: ChildProcess[] = [];
  readonly #all: ChildProcess[] = [];
  readonly #waiting: Waiting[] = [];

  constructor(size: number) {
    for (let i = 0; i < size; i++) {
      const child = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), ['--worker']);
      setPriority(child.pid as number, 10);
      this.#all.push(child);
      this.#idle.push(child);
    }
  }

  run<J extends Job>(job: J, isUrgent = false): Promise<JobResult<J>> {
    return new Promise((resolve, reject) => {
      const waiting = {
        job,
        done: (result: number | RunFigures) => resolve(result as JobResult<J>),
        failed: reject,
      };
      // what a search was made for comes before what has not begun
      if (isUrgent) this.#waiting.unshift(waiting);
      else this.#waiting.push(waiting);
      this.#next();
    });
  }

  close(): void {
    for (const child of this.#all) child.disconnect();
  }

  #next(): void {
    const child = this.#idle.pop();
    const waiting = child === undefined ? undefined : this.#waiting.shift();
    if (child === undefined) return;
    if (waiting === undefined) {
      this.#idle.push(child);
      return;
    }
    const died = (code: number | null): void => {
      waiting.failed(new Error(`a run of ${waiting.job.scenario.name} ended with code ${code}`));
    };
    child.once('exit', died);
    child.once('message', (result: number | RunFigures) => {
      child.off('exit', died);
      this.#idle.push(child);
      waiting.done(result);
      this.#next();
    });
    child.send(waiting.job);
  }
}
