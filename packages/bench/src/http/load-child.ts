// The entry of the process that offers loads: a job comes in as a message, its result goes out as one.
import { type ClosedLoopOptions, closedLoop, type LoadOptions, offerInTurns } from './load.js';

type Job =
  | { readonly open: readonly LoadOptions[]; readonly turns: number }
  | { readonly closed: ClosedLoopOptions };

process.on('message', (job: Job) => {
  const work: Promise<object> =
    'open' in job ? offerInTurns(job.open, job.turns) : closedLoop(job.closed);
  work.then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
