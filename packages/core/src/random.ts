/** A source of chance: each call gives a number in [0, 1). */
export type Random = () => number;

/** The process's generator. Good for jitter, not for secrets. */
export const systemRandom: Random = () => Math.random();
