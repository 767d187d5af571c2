import type { Limiter } from './limiter.js';

/** No limit. Learns nothing and holds nothing, so one instance serves all. */
export const unlimited: Limiter = {
  maxConcurrency: Number.POSITIVE_INFINITY,
  admits: () => true,
  started() {},
  refused() {},
  record() {},
};
