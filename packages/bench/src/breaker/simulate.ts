import { mock } from 'node:test';
import { seededRandom } from '@elimit/testkit';
import { EventQueue } from '../sim/event-queue.js';
import type { Arm, NodeBreaker } from './arms.js';
import type { Answer, Scenario } from './scenarios.js';

/** What one arm made of one scenario. */
export interface Figures {
  readonly calls: number;
  /** Calls that ended badly for the caller: the node failed, or no breaker let the call through. */
  readonly failed: number;
  /** Times a node was isolated that should not have been. */
  readonly goodIsolated: number;
  /** Mean time from the start of a fault to the isolation; a fault never noticed counts with its length; null without a fault. */
  readonly detectMs: number | null;
  /** Mean time from the end of a fault to the last call refused because of it; null where no fault ends or none was noticed. */
  readonly returnMs: number | null;
}

/** The service's own mark for a refusal, as an HTTP client would show it. */
class ElimitError extends Error {
  readonly status = 503;
  readonly code = 'ELIMIT';
}

/**
 * Plays a scenario in virtual time. The breakers run as they are: `Date` and timers are Node's mock timers, moved
 * from event to event, and promises settle in between.
 *
 * A call goes to the nodes in turn; if a node's breaker refuses it, to the next one; it fails if all refuse, or the
 * node that took it fails.
 */
export async function simulate(scenario: Scenario, arm: Arm, seed: number): Promise<Figures> {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_700_000_000_000 });
  try {
    return await new Run(scenario, arm, seed).play();
  } finally {
    mock.timers.reset();
  }
}

class Run {
  readonly #scenario: Scenario;
  readonly #arrivals: () => number;
  readonly #answers: () => number;
  readonly #breakers: NodeBreaker[];
  readonly #inflight: number[];
  readonly #opens: { node: number; ms: number }[] = [];
  readonly #refusals: { node: number; ms: number }[] = [];
  readonly #queue = new EventQueue();
  readonly #events = new Map<number, () => void>();
  #nextEvent = 0;
  #ms = 0;
  #next = 0;
  #calls = 0;
  #failed = 0;

  constructor(scenario: Scenario, arm: Arm, seed: number) {
    this.#scenario = scenario;
    this.#arrivals = seededRandom(seed);
    this.#answers = seededRandom(seed + 1000);
    const jitter = seededRandom(seed + 2000);
    const clock = { nowUs: () => 1_000_000 + this.#ms * 1000 };
    const nodes = Array.from({ length: scenario.nodes }, (_, node) => node);
    this.#inflight = nodes.map(() => 0);
    const create = arm.start(clock, jitter);
    this.#breakers = nodes.map((node) => create(() => this.#opens.push({ node, ms: this.#ms })));
  }

  async play(): Promise<Figures> {
    const { durationMs } = this.#scenario;
    this.#scheduleArrival(0);
    while (this.#queue.size > 0) {
      const ms = this.#queue.nextTime;
      const event = this.#queue.pop();
      if (ms > this.#ms) {
        mock.timers.tick(ms - this.#ms);
        this.#ms = ms;
      }
      this.#events.get(event)?.();
      this.#events.delete(event);
      await settled();
      if (ms > durationMs + 5000) break;
    }
    for (const breaker of this.#breakers) breaker.end();
    return this.#figures();
  }

  #at(ms: number, what: () => void): void {
    const event = this.#nextEvent++;
    this.#events.set(event, what);
    this.#queue.push(ms, event);
  }

  #scheduleArrival(exactMs: number): void {
    const next = exactMs - (1000 / this.#scenario.rate(exactMs)) * Math.log(1 - this.#arrivals());
    if (next > this.#scenario.durationMs) return;
    this.#at(Math.ceil(next), () => {
      this.#calls += 1;
      void this.#call();
      this.#scheduleArrival(next);
    });
  }

  async #call(): Promise<void> {
    const nodes = this.#breakers.length;
    const first = this.#next++ % nodes;
    for (let i = 0; i < nodes; i++) {
      const node = (first + i) % nodes;
      const call = { began: false };
      try {
        await (this.#breakers[node] as NodeBreaker).execute(() => {
          call.began = true;
          return this.#work(node);
        });
        return;
      } catch {
        if (call.began) break;
        this.#refusals.push({ node, ms: this.#ms });
      }
    }
    this.#failed += 1;
  }

  #work(node: number): Promise<void> {
    const inflight = (this.#inflight[node] ?? 0) + 1;
    this.#inflight[node] = inflight;
    const answer: Answer = this.#scenario.answer(node, this.#ms, inflight, this.#answers);
    return new Promise((resolve, reject) => {
      this.#at(this.#ms + answer.ms, () => {
        this.#inflight[node] = (this.#inflight[node] ?? 0) - 1;
        if (answer.end === 'success') resolve();
        else
          reject(answer.end === 'elimit' ? new ElimitError('over the limit') : new Error('failed'));
      });
    });
  }

  #figures(): Figures {
    const { faults, durationMs } = this.#scenario;
    const isFaulty = (node: number, ms: number): boolean =>
      faults.some(
        (fault) =>
          fault.node === node &&
          ms >= fault.fromMs &&
          (fault.untilMs >= durationMs || ms <= fault.untilMs + (fault.weakMs ?? 0)),
      );
    const goodIsolated = this.#opens.filter(({ node, ms }) => !isFaulty(node, ms)).length;
    const detected: number[] = [];
    const returned: number[] = [];
    for (const { node, fromMs, untilMs } of faults) {
      const nextMs = Math.min(
        durationMs,
        ...faults
          .filter((each) => each.node === node && each.fromMs > untilMs)
          .map((each) => each.fromMs),
      );
      const refused = this.#refusals.filter(
        (each) => each.node === node && each.ms >= fromMs && each.ms < nextMs,
      );
      const open = this.#opens.find(
        (each) => each.node === node && each.ms >= fromMs && each.ms < untilMs,
      );
      // a node still out from the fault before tells nothing of how this one is noticed
      const wasOut =
        refused[0] !== undefined && refused[0].ms < Math.min(untilMs, open?.ms ?? untilMs);
      if (!wasOut) detected.push((open?.ms ?? untilMs) - fromMs);
      if (untilMs < durationMs && (wasOut || open !== undefined)) {
        returned.push(Math.max(0, (refused.at(-1)?.ms ?? 0) - untilMs));
      }
    }
    return {
      calls: this.#calls,
      failed: this.#failed,
      goodIsolated,
      detectMs: mean(detected),
      returnMs: mean(returned),
    };
  }
}

export function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Every promise that can settle has: a turn of the real event loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
