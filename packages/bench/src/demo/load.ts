// A process that offers one load: the job comes in as a message, what there is so far goes out, and at last the result.
import { type LoadOptions, type LoadResult, offerLoad } from '../http/load.js';

export type LoadMessage = { readonly soFar: LoadResult } | { readonly result: LoadResult };

const tell = (message: LoadMessage): void => {
  if (process.connected) process.send?.(message);
};

process.on('message', (options: LoadOptions) => {
  offerLoad(options, (soFar) => tell({ soFar })).then(
    (result) => tell({ result }),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
