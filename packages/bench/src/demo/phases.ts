import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { GuardSnapshot } from '@elimit/core';
import { IDEAL_PER_SECOND, requestFor, type Workload } from '../http/handlers.js';
import type { LoadOptions, LoadResult } from '../http/load.js';
import type { LoadMessage } from './load.js';
import type { Protection, ServiceMessage } from './service-message.js';

export type { Protection };

/** One service under one load. */
export interface Phase {
  readonly workload: Workload;
  readonly protection: Protection;
  /** Requests per second. */
  readonly rate: number;
}

/** What is known of a phase while it runs, and at its end. */
export interface PhaseResult extends Phase {
  readonly load: LoadResult | undefined;
  /** The guard's last snapshot; none for a bare service. */
  readonly guard: GuardSnapshot | undefined;
}

export interface PhaseTiming {
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly deadlineMs: number;
  /** 0 for any free one. */
  readonly port: number;
}

/** What a workload could do at best, per second. */
export function capacityOf(workload: Workload): number {
  return IDEAL_PER_SECOND[workload];
}

/** Starts the service and the load, each in a process of its own, and ends both. */
export async function runPhase(
  phase: Phase,
  timing: PhaseTiming,
  onProgress: (soFar: PhaseResult) => void,
): Promise<PhaseResult> {
  const service = start('./service.ts', [phase.workload, phase.protection, `${timing.port}`]);
  const client = start('./load.ts', []);
  let load: LoadResult | undefined;
  let guard: GuardSnapshot | undefined;
  try {
    const port = await new Promise<number>((resolve, reject) => {
      failOnExit(service, 'the service', reject);
      service.on('message', (message: ServiceMessage) => {
        if ('port' in message) resolve(message.port);
        else guard = message.guard;
      });
    });
    load = await new Promise<LoadResult>((resolve, reject) => {
      failOnExit(service, 'the service', reject);
      failOnExit(client, 'the load generator', reject);
      client.on('message', (message: LoadMessage) => {
        if ('result' in message) resolve(message.result);
        else onProgress({ ...phase, load: message.soFar, guard });
      });
      const { warmUpMs, durationMs, deadlineMs } = timing;
      const job: LoadOptions = {
        ...requestFor(phase.workload),
        port,
        client: 'hangUp',
        rate: phase.rate,
        warmUpMs,
        durationMs,
        deadlineMs,
      };
      client.send(job);
    });
    return { ...phase, load, guard };
  } finally {
    await Promise.all([end(service), end(client)]);
  }
}

function start(file: string, args: readonly string[]): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

function failOnExit(child: ChildProcess, what: string, reject: (error: Error) => void): void {
  child.once('exit', (code, signal) => {
    reject(new Error(`${what} ended by itself (${signal ?? `exit code ${code}`})`));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill();
  await exit;
}
