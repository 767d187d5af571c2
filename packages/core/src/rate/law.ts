/**
 * How the numbers of one bucket move. A bucket is a few neighbouring cells of an array, so that a
 * hundred thousand keys are one array and not a hundred thousand objects; one law serves them all.
 *
 * A law holds no clock and no timer: it is told the time, in whole microseconds of one clock for all
 * its buckets. Time that stands still or goes back adds nothing, and nothing is paid for twice.
 * Costs (`n`) are finite and at least 0: whoever asks has checked that.
 */
export interface BucketLaw {
  /** Tokens per second; 0 stops the refill. */
  readonly rate: number;
  /** The most tokens saved. */
  readonly burst: number;
  /** Cells per bucket. */
  readonly width: number;
  /** Makes the bucket at `at` one that nobody has used. */
  reset(cells: Float64Array, at: number, nowUs: number): void;
  /** Tokens that could be taken now; below 0 while reservations are being paid off. */
  tokens(cells: Float64Array, at: number, nowUs: number): number;
  /** Asks only: 0 if `n` could be taken now, else microseconds until it could; `Infinity` for never. */
  waitUs(cells: Float64Array, at: number, n: number, nowUs: number): number;
  /** Like `waitUs`, and takes `n` when that is 0. A refusal changes nothing. */
  take(cells: Float64Array, at: number, n: number, nowUs: number): number;
  /** Takes `n` at once and tells how long the caller has to wait for it; `Infinity`: refused, nothing taken. */
  reserve(cells: Float64Array, at: number, n: number, nowUs: number): number;
  /** Puts `n` back, never above the burst. */
  refund(cells: Float64Array, at: number, n: number, nowUs: number): void;
  /** When all that was taken is paid for; `Infinity` while the rate is 0 and something is missing. */
  paidAtUs(cells: Float64Array, at: number): number;
  /** When it will be as if nobody had ever used it: from then on it can be forgotten at no loss. */
  freshAtUs(cells: Float64Array, at: number): number;
  /** The longest time from a `take` until its bucket is fresh again. */
  readonly freshWithinUs: number;
  /** Makes the bucket one that is paid for at `paidAtUs`: what is known of a key that was forgotten. */
  resume(cells: Float64Array, at: number, paidAtUs: number, nowUs: number): void;
  /** Changes rate and burst for all buckets in the array: what came before is paid as it was then. */
  retune(cells: Float64Array, rate: number, burst: number, nowUs: number): void;
}

/** Sums of small refills fall this little short of a whole token in binary fractions. */
export const TOKEN_TOLERANCE = 1e-9;

/** Microseconds until `missing` tokens have come in, cut upwards, at least 1; `Infinity` at rate 0. */
export function refillUs(missing: number, rate: number): number {
  // the same tolerance in time, so that dust in a sum is not waited for; never a whole microsecond of a slow rate
  const dustUs = (TOKEN_TOLERANCE * 1e6) / Math.max(1, rate);
  return Math.max(1, Math.ceil((missing * 1e6) / rate - dustUs));
}
