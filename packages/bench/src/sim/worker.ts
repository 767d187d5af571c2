import { type ArmSetting, admissionOf } from './arms.js';
import type { Scenario } from './scenario.js';
import { type RunFigures, simulate } from './simulate.js';
import { tuneFixed } from './tune.js';

/** One run, or the search for the best fixed limit. */
export type Job =
  | {
      readonly kind: 'run';
      readonly scenario: Scenario;
      readonly setting: ArmSetting;
      readonly seed: number;
    }
  | { readonly kind: 'tune'; readonly scenario: Scenario };
export type JobResult<J extends Job> = J extends { kind: 'tune' } ? number : RunFigures;

export function doJob(job: Job): number | RunFigures {
  if (job.kind === 'tune') return tuneFixed(job.scenario);
  return simulate(job.scenario, admissionOf(job.setting, job.scenario), job.seed);
}

// a child of pool.ts: one job at a time, until there is none
if (process.send !== undefined && process.argv[2] === '--worker') {
  process.on('message', (job: Job) => {
    process.send?.(doJob(job));
  });
}
