import type { Limiter, LimiterWarning, Outcome } from '@elimit/core';

/** What a limiter was told of one ended call. */
export interface Sample {
  readonly outcome: Outcome;
  readonly latencyUs: number;
  readonly nowUs: number;
  readonly inflightAtStart: number;
}

/** What a limiter was asked. */
export interface Question {
  readonly inflight: number;
  readonly nowUs: number;
  readonly remainingUs: number;
}

/** A limiter that keeps all it was asked and told, and admits up to `maxConcurrency`, or by `verdict` if one is set. */
export class SpyLimiter implements Limiter {
  maxConcurrency: number;
  /** Replaces the comparison with `maxConcurrency`. */
  verdict: ((question: Question) => boolean) | undefined;
  /** What `warning()` gives. */
  warns: LimiterWarning | undefined;
  readonly questions: Question[] = [];
  readonly starts: { readonly nowUs: number; readonly inflight: number }[] = [];
  readonly refusals: number[] = [];
  readonly samples: Sample[] = [];

  constructor(maxConcurrency = Number.POSITIVE_INFINITY) {
    this.maxConcurrency = maxConcurrency;
  }

  admits(inflight: number, nowUs: number, remainingUs: number): boolean {
    const question = { inflight, nowUs, remainingUs };
    this.questions.push(question);
    return this.verdict?.(question) ?? inflight <= this.maxConcurrency;
  }

  started(nowUs: number, inflight: number): void {
    this.starts.push({ nowUs, inflight });
  }

  refused(nowUs: number): void {
    this.refusals.push(nowUs);
  }

  record(outcome: Outcome, latencyUs: number, nowUs: number, inflightAtStart: number): void {
    this.samples.push({ outcome, latencyUs, nowUs, inflightAtStart });
  }

  warning(): LimiterWarning | undefined {
    return this.warns;
  }
}
