/**
 * How an admitted call ended, as far as an engine is concerned.
 *
 * - `success`: it was served; its latency is a sample.
 * - `failure`: a fault of ours (a 5xx, an error, a timeout); its latency is a sample, weighed by the engine.
 * - `ignored`: says nothing about our load (a refusal, a stream); never a sample.
 * - `abandoned`: the client left first. A censored sample: the call would have taken at least this
 *   long, so it may raise an estimate of latency, but never lower it.
 */
export type Outcome = 'success' | 'failure' | 'ignored' | 'abandoned';
