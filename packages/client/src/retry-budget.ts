import { type Clock, integerIn, knownKeys, numberIn, systemClock } from '@elimit/core';

/** What second tries may cost. */
export interface RetryBudgetOptions {
  /** Second tries allowed per call, 0 to 1. @default 0.1 */
  readonly ratio?: number | undefined;
  /** Second tries allowed in each window whatever the traffic, so that a quiet process can retry its first failure; 0 to 1 000 000. @default 10 */
  readonly floor?: number | undefined;
  /** How far back calls and tries are counted, in milliseconds, 1000 to 3 600 000. @default 10000 */
  readonly windowMs?: number | undefined;
}

export const RETRY_BUDGET_DEFAULTS = { ratio: 0.1, floor: 10, windowMs: 10_000 } as const;

const SLOTS = 10;

export type ResolvedRetryBudget = Readonly<Record<keyof typeof RETRY_BUDGET_DEFAULTS, number>>;

/** @param of - what the options belong to, for messages: `channel.retryBudget` */
export function resolveRetryBudgetOptions(
  of: string,
  options: RetryBudgetOptions,
): ResolvedRetryBudget {
  const defaults = RETRY_BUDGET_DEFAULTS;
  knownKeys(of, options, defaults);
  return {
    ratio: numberIn(`${of}.ratio`, options.ratio ?? defaults.ratio, 0, 1),
    floor: integerIn(`${of}.floor`, options.floor ?? defaults.floor, 0, 1_000_000),
    windowMs: integerIn(`${of}.windowMs`, options.windowMs ?? defaults.windowMs, 1000, 3_600_000),
  };
}

/**
 * Pays for second tries. In any `windowMs`: at most `ratio` of the calls, plus `floor`. An outage of
 * everything then costs the cluster 10 % more calls, not four times as many.
 */
export class RetryBudget {
  // set once
  readonly #ratio: number;
  readonly #floor: number;
  readonly #slotUs: number;
  readonly #clock: Clock;
  // a ring of slots, one tenth of the window each
  readonly #calls = new Float64Array(SLOTS);
  readonly #spent = new Float64Array(SLOTS);
  #slot: number;

  constructor(options: RetryBudgetOptions = {}, clock: Clock = systemClock, of = 'retryBudget') {
    const { ratio, floor, windowMs } = resolveRetryBudgetOptions(of, options);
    this.#ratio = ratio;
    this.#floor = floor;
    this.#slotUs = (windowMs * 1000) / SLOTS;
    this.#clock = clock;
    this.#slot = Math.floor(clock.nowUs() / this.#slotUs);
  }

  /** A first try was made. */
  called(): void {
    const at = this.#roll();
    this.#calls[at] = (this.#calls[at] as number) + 1;
  }

  /** Pays for one more try. Asked when the try is decided, so that those still waiting count too. */
  trySpend(): boolean {
    const at = this.#roll();
    if (this.#left() < 1) return false;
    this.#spent[at] = (this.#spent[at] as number) + 1;
    return true;
  }

  #left(): number {
    let calls = 0;
    let spent = 0;
    for (let i = 0; i < SLOTS; i++) {
      calls += this.#calls[i] as number;
      spent += this.#spent[i] as number;
    }
    // the last term forgives rounding: 0.29 × 100 is 28.999999999999996
    return this.#floor + this.#ratio * calls - spent + 1e-9;
  }

  #roll(): number {
    const slot = Math.floor(this.#clock.nowUs() / this.#slotUs);
    const passed = Math.min(SLOTS, slot - this.#slot);
    for (let i = 1; i <= passed; i++) {
      this.#calls[(this.#slot + i) % SLOTS] = 0;
      this.#spent[(this.#slot + i) % SLOTS] = 0;
    }
    this.#slot = Math.max(this.#slot, slot);
    return this.#slot % SLOTS;
  }
}
