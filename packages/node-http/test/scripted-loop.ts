import type { LoopHooks } from '../src/loop-monitor.js';

/** A loop that goes round when told: `work` passes busy time, `sleep` idle time, `turn` ends a turn. */
export class ScriptedLoop implements LoopHooks {
  now = 1_000_000;
  idle = 0;
  refs = 0;
  #atTurnEnd: (() => void) | undefined;

  nowUs(): number {
    return this.now;
  }

  idleUs(): number {
    return this.idle;
  }

  atTurnEnd(callback: () => void): { ref(): void; unref(): void } {
    this.#atTurnEnd = callback;
    this.refs = 1;
    return { ref: () => (this.refs = 1), unref: () => (this.refs = 0) };
  }

  work(us: number): void {
    this.now += us;
  }

  sleep(us: number): void {
    this.now += us;
    this.idle += us;
  }

  turn(): void {
    this.#atTurnEnd?.();
  }
}
