import { AsyncResource } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';
import { systemClock } from '@elimit/core';

/** Whoever wants to know how long the loop's turns are: every guard does. */
export interface LoopListener {
  observeLoop(turn: { readonly turnUs: number; readonly idled: boolean }): void;
}

/** The loop as the monitor sees it. The thread's own, unless a test brings another. */
export interface LoopHooks {
  nowUs(): number;
  /** How long the loop has slept since the thread began, in microseconds. */
  idleUs(): number;
  /** Calls back once, at the end of this turn of the loop, after its sockets were read. */
  atTurnEnd(callback: () => void): LoopHandle;
}

/** The awaited end of a turn. While it is ref'd, the loop does not sleep. */
export interface LoopHandle {
  ref(): unknown;
  unref(): unknown;
}

/** A poll that found something ready counts some microseconds of idle time too; more than this is sleep. */
const SLEPT_US = 20;
/** Turns shorter than this are told in bunches: two hundred guards need not hear of every one. */
const SHORT_TURN_US = 1_000;
const BUNCH_US = 5_000;

const { nodeTiming } = performance;

const threadLoop: LoopHooks = {
  nowUs: () => systemClock.nowUs(),
  idleUs: () => nodeTiming.idleTime * 1_000,
  atTurnEnd: (callback) => setImmediate(callback),
};

/**
 * Watches the turns of this thread's event loop: how long each one kept the sockets waiting, whether
 * the loop slept before it, and how many connections it has accepted so far.
 *
 * One immediate, armed anew in each turn and unref'd, does it: it wakes nothing and keeps nothing alive.
 */
export class LoopMonitor {
  // set once
  readonly #loop: LoopHooks;
  readonly #onTurnEnd = (): void => this.#endTurn();
  /** The async context of the module, so that no request's stores live on in the chain of immediates. */
  readonly #root = new AsyncResource('ElimitLoopMonitor', { requireManualDestroy: true });
  readonly #listeners = new Set<WeakRef<LoopListener>>();
  readonly #refs = new WeakMap<LoopListener, WeakRef<LoopListener>>();
  #afterTurn: (() => void) | undefined;
  // this turn: a turn begins and ends where its immediate runs, its poll lies in between
  #handle: LoopHandle | undefined;
  #awake = false;
  #turnBeganUs = 0;
  #idleBeganUs = 0;
  #looked = false;
  #lookUs = 0;
  #blindUs = 0;
  // the turn before
  #previousLookUs = 0;
  #turnUs = 0;
  // short turns not yet told
  #toldUs = 0;
  readonly #untold = { turnUs: 0, idled: false };
  #connections = 0;
  #turns = 0;

  constructor(loop: LoopHooks = threadLoop) {
    this.#loop = loop;
  }

  /** Connections seen so far. */
  get connections(): number {
    return this.#connections;
  }

  /** Turns of the loop seen so far. */
  get turns(): number {
    return this.#turns;
  }

  /** How long the last turn was, without the time slept in it, in microseconds. */
  get turnUs(): number {
    return this.#turnUs;
  }

  nowUs(): number {
    return this.#loop.nowUs();
  }

  /** Begins to watch; later calls do nothing. */
  start(): void {
    if (this.#handle !== undefined) return;
    this.#turnBeganUs = this.#previousLookUs = this.#loop.nowUs();
    this.#idleBeganUs = this.#loop.idleUs();
    this.#root.runInAsyncScope(() => this.#arm());
  }

  /** Tells a guard of every turn from now on. Held weakly; asking twice is asking once. */
  watch(listener: LoopListener): void {
    this.start();
    if (this.#refs.has(listener)) return;
    const ref = new WeakRef(listener);
    this.#refs.set(listener, ref);
    this.#listeners.add(ref);
  }

  /** Calls `afterTurn` at the end of every turn; the dispatch queue's, the only one. */
  atEveryTurn(afterTurn: () => void): void {
    this.#afterTurn = afterTurn;
  }

  /** While true, the loop goes round without sleeping, because there is work to start at a turn's end. */
  keepAwake(awake: boolean): void {
    if (awake === this.#awake) return;
    this.#awake = awake;
    if (awake) {
      this.start();
      this.#handle?.ref();
    } else this.#handle?.unref();
  }

  /** A connection was accepted. To be called inside that very event. */
  connected(): void {
    this.#connections++;
    this.arrived();
  }

  /**
   * A socket has shown something: a connection, or a request. To be called inside that very event.
   *
   * @returns when it arrived, in microseconds, as far as can be known. If the loop slept until now, then
   *   now. Else it came at some moment since the sockets were last looked at: half of that time ago.
   */
  arrived(): number {
    this.start();
    // all that one poll brings was ready when it returned: the first event in it stands for the others
    if (this.#looked && !this.#sleptSinceLook()) return this.#lookUs - this.#blindUs / 2;
    const nowUs = this.#loop.nowUs();
    this.#blindUs = this.#slept() ? 0 : nowUs - this.#previousLookUs;
    this.#looked = true;
    this.#lookUs = nowUs;
    return nowUs - this.#blindUs / 2;
  }

  /**
   * How long the loop had not looked at its sockets before what they show now, in microseconds; 0 if it
   * slept until now. Read inside a socket's event.
   */
  blindUs(): number {
    return this.#slept() ? 0 : this.#loop.nowUs() - this.#previousLookUs;
  }

  /** Work done since the loop slept, in microseconds; Infinity if it did not sleep in this turn. */
  turnAgeUs(): number {
    const sleptUs = this.#loop.idleUs() - this.#idleBeganUs;
    if (sleptUs <= SLEPT_US) return Number.POSITIVE_INFINITY;
    // without an event to go by: the sleep is counted as if it had come first in the turn
    const wokeUs = this.#looked ? this.#lookUs : this.#turnBeganUs + sleptUs;
    return this.#loop.nowUs() - wokeUs;
  }

  #slept(): boolean {
    return this.#loop.idleUs() - this.#idleBeganUs > SLEPT_US;
  }

  /** True if the look of this turn was taken before its poll, by an event out of a timer, say. */
  #sleptSinceLook(): boolean {
    return this.#blindUs > 0 && this.#slept();
  }

  #arm(): void {
    this.#handle = this.#loop.atTurnEnd(this.#onTurnEnd);
    if (!this.#awake) this.#handle.unref();
  }

  #endTurn(): void {
    this.#arm(); // first, so that nothing thrown below can end the watch
    this.#turns++;
    const nowUs = this.#loop.nowUs();
    const idleUs = this.#loop.idleUs();
    const sleptUs = idleUs - this.#idleBeganUs;
    const turnUs = Math.max(0, nowUs - this.#turnBeganUs - sleptUs);
    this.#previousLookUs = this.#looked ? this.#lookUs : nowUs;
    this.#turnUs = turnUs;
    this.#looked = false;
    this.#turnBeganUs = nowUs;
    this.#idleBeganUs = idleUs;
    this.#tell(nowUs, turnUs, sleptUs > SLEPT_US);
    this.#afterTurn?.();
  }

  #tell(nowUs: number, turnUs: number, idled: boolean): void {
    const turn = this.#untold;
    if (turnUs > turn.turnUs) turn.turnUs = turnUs;
    if (idled) turn.idled = true;
    if (turnUs < SHORT_TURN_US && nowUs - this.#toldUs < BUNCH_US) return;
    this.#toldUs = nowUs;
    for (const ref of this.#listeners) {
      const listener = ref.deref();
      if (listener === undefined) this.#listeners.delete(ref);
      else listener.observeLoop(turn);
    }
    turn.turnUs = 0;
    turn.idled = false;
  }
}
