import type { RejectionReason } from './errors.js';

/** Refusals since the last event of this kind by the same source: at most one event a second each. */
export interface RejectEvent {
  readonly type: 'reject';
  readonly name: string;
  /** `open` for a circuit breaker that does not let the call through. */
  readonly reason: RejectionReason | 'open';
  /** How many refusals for this reason the event stands for, this one included. */
  readonly count: number;
  /** A hash of the key, for rates; the key itself only if the source was told so. */
  readonly key?: string;
}

/** A breaker or an endpoint changed its state. */
export interface BreakerEvent {
  readonly type: 'open' | 'halfOpen' | 'close';
  readonly name: string;
  /**
   * What moved it. `errorCost`, `relapse`, `trial`, `trialTimeout`, `refused`, `unreachable`, `connectTimeout` or `forced`
   * opened it; `timer` or `healthCheck` let trials through; `trial`, `forced` or `reset` closed it.
   */
  readonly cause: string;
  /** How long the isolation lasts, in milliseconds; 0 except for `open`, `Infinity` if it was forced. */
  readonly isolationMs: number;
}

/** A part changed how it works: a store fell back, recovery began, a rule came into force. */
export interface ModeEvent {
  readonly type: 'mode';
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly cause: string;
}

/** An option was changed while running. */
export interface ConfigureEvent {
  readonly type: 'configure';
  readonly name: string;
  readonly changed: Readonly<Record<string, unknown>>;
}

/** Something is set up in a way that will hurt. Once for each source and code; `docs/errors.md` explains the codes. */
export interface WarningEvent {
  readonly type: 'warning';
  readonly code: string;
  readonly name: string;
  readonly message: string;
}

/** All that is told through `onEvent`. */
export type ElimitEvent = RejectEvent | BreakerEvent | ModeEvent | ConfigureEvent | WarningEvent;

/** Hears events. Called after the state has changed; what it throws, or rejects with, is swallowed, since no call may fail for it. */
export type OnEvent = (event: ElimitEvent) => void;

/** A listener whose exceptions reach nobody. */
export function quiet(onEvent: OnEvent | undefined): OnEvent | undefined {
  if (onEvent === undefined) return undefined;
  return (event) => tell(onEvent, event);
}

/** Calls a listener whose exceptions reach nobody, an async one's rejections neither. */
export function tell<News>(listener: (news: News) => unknown, news: News): void {
  try {
    const told = listener(news) as Partial<PromiseLike<unknown>> | undefined | null;
    if (typeof told?.then === 'function') told.then(undefined, swallow);
  } catch {
    // swallowed on purpose: no call may fail for a listener
  }
}

function swallow(): void {}
