import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Rejection } from '@elimit/core';
import type { LoopMonitor } from './loop-monitor.js';

/** Who goes first when several wait. */
export type DispatchPriority = 'critical' | 'default' | 'sheddable';

/** What the queue needs of a permit. */
export interface DispatchPermit {
  /** The client left before the handler started. */
  abandon(): void;
  revoke(reason: 'deadline' | 'queue'): Rejection;
}

/** What has passed through a queue. Counters only grow. */
export interface DispatchSnapshot {
  /** Waiting now. */
  readonly waiting: number;
  /** Started in their own event, because the loop had slept before it. */
  readonly atOnce: number;
  /** Put into the queue. */
  readonly queued: number;
  /** Started from the queue. */
  readonly started: number;
  /** Dropped from the queue because their client had left. */
  readonly abandoned: number;
  /** Refused in the queue because their deadline had passed. */
  readonly overdue: number;
  /** Refused because the queue was full. */
  readonly overflown: number;
  /** Turns of the loop spent on accepting connections while handlers waited. */
  readonly spins: number;
  /** The longest the queue has been. */
  readonly longest: number;
}

/** Handler time between two looks at the sockets, at least; and the age up to which a turn counts as young. */
const BUDGET_US = 1_000;
/** Handlers get a quarter of the loop at least: where refusing makes the turns long, the budget grows with them. */
const OTHERS_PER_HANDLERS = 3;
/** Turns spent on accepting connections before the next handler, at most. */
const MAX_SPINS = 64;
/** Time spent so, at most: on a starved CPU 64 turns would outlast the patience of those who wait. */
const MAX_SPIN_US = 25_000;
/** An `await` or two before the work must not hide it from the budget. */
const MICROTASK_HOPS = 3;
/** Room of a FIFO that is reclaimed at once rather than with each ticket. */
const SLACK = 64;

/** How often the whole queue is searched for those who need not wait any longer. */
const SWEEP_US = 5_000;

const settled = Promise.resolve();

/** One waiting request, in its own async context. */
class Ticket extends AsyncResource {
  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly permit: DispatchPermit,
    readonly run: () => void,
    readonly onRefused: (rejection: Rejection) => void,
    readonly deadlineUs: number,
  ) {
    super('ElimitDispatch', { requireManualDestroy: true });
  }

  start(): void {
    try {
      this.runInAsyncScope(this.run);
    } finally {
      this.emitDestroy();
    }
  }

  /** The client has left, or somebody else has answered. */
  get gone(): boolean {
    const { req, res } = this;
    const socket = req.socket as Socket | undefined;
    // Node ends a socket as soon as its client has, turns before it says so of the request. It goes later than the
    // request if an answer before this one is still being written; `req.destroyed` would be true for a body that was
    // read to its end, too
    return (
      (socket !== undefined && (socket.destroyed || socket.writableEnded)) ||
      req.readableAborted ||
      res.destroyed ||
      res.writableEnded
    );
  }

  abandon(): void {
    this.permit.abandon();
    this.emitDestroy();
  }

  refuse(reason: 'deadline' | 'queue'): void {
    try {
      this.runInAsyncScope(this.onRefused, undefined, this.permit.revoke(reason));
    } finally {
      this.emitDestroy();
    }
  }
}

function refuseOverdue(ticket: Ticket): void {
  ticket.refuse('deadline');
}

/** First in, first out; shifting costs no copy. */
class Fifo {
  #tickets: (Ticket | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#tickets.length - this.#head;
  }

  push(ticket: Ticket): void {
    this.#tickets.push(ticket);
  }

  pop(): Ticket | undefined {
    return this.length > 0 ? this.#tickets.pop() : undefined;
  }

  shift(): Ticket | undefined {
    if (this.length === 0) return undefined;
    const ticket = this.#tickets[this.#head];
    this.#tickets[this.#head++] = undefined;
    if (this.length === 0) this.#tickets.length = this.#head = 0;
    else if (this.#head > SLACK && this.#head > this.length) {
      this.#tickets = this.#tickets.slice(this.#head);
      this.#head = 0;
    }
    return ticket;
  }

  /** Takes out, in order, those that `leaves` says. */
  takeOut(leaves: (ticket: Ticket) => boolean): Ticket[] | undefined {
    let out: Ticket[] | undefined;
    for (let i = this.#head; i < this.#tickets.length; i++) {
      const ticket = this.#tickets[i] as Ticket;
      if (!leaves(ticket)) continue;
      out ??= [];
      out.push(ticket);
    }
    if (out !== undefined) {
      const left = new Set(out);
      this.#tickets = this.#tickets.slice(this.#head).filter((t) => !left.has(t as Ticket));
      this.#head = 0;
    }
    return out;
  }
}

/**
 * The queue in front of the handlers of one thread.
 *
 * A handler starts at once only if the loop had slept just before this turn: then nothing waits anywhere.
 * Else it waits here, and the next one starts after a turn of the loop in which no connection came, so
 * that whoever stands at a socket is seen, counted and, if need be, refused first. See `docs/dispatch.md`.
 */
export class DispatchQueue {
  // set once
  readonly #monitor: LoopMonitor;
  readonly #critical = new Fifo();
  readonly #default = new Fifo();
  readonly #sheddable = new Fifo();
  readonly #settle = (): void => this.#settleHandler();
  readonly #goOn = (): void => this.#continue();
  // the state of the drain
  #waiting = 0;
  #draining = false;
  #drainBeganUs = 0;
  #budgetUs = BUDGET_US;
  #hops = 0;
  #spins = 0;
  #spinBeganUs = 0;
  #otherSinceUs = 0;
  #drainEndedUs = 0;
  #sweptUs = 0;
  #connectionsSeen = 0;
  #lastAtOnce: Socket | undefined;
  // counters
  #atOnce = 0;
  #queued = 0;
  #started = 0;
  #abandoned = 0;
  #overdue = 0;
  #overflown = 0;
  #spun = 0;
  #longest = 0;

  constructor(monitor: LoopMonitor) {
    this.#monitor = monitor;
    monitor.atEveryTurn(() => this.#turn());
  }

  /** Starts a request's handler, now or when its turn has come. */
  enter(
    req: IncomingMessage,
    res: ServerResponse,
    permit: DispatchPermit,
    run: () => void,
    onRefused: (rejection: Rejection) => void,
    deadlineUs: number,
    priority: DispatchPriority,
    maxQueued: number,
  ): void {
    if (this.#mayStartAtOnce(req)) {
      this.#atOnce++;
      run();
      return;
    }
    const ticket = new Ticket(req, res, permit, run, onRefused, deadlineUs);
    if (this.#waiting >= maxQueued) {
      this.#overflown++;
      const outranked = this.#takeLastBelow(priority);
      if (outranked === undefined) {
        ticket.refuse('queue');
        return;
      }
      this.#push(ticket, priority);
      outranked.refuse('queue');
      return;
    }
    this.#push(ticket, priority);
  }

  snapshot(): DispatchSnapshot {
    return {
      waiting: this.#waiting,
      atOnce: this.#atOnce,
      queued: this.#queued,
      started: this.#started,
      abandoned: this.#abandoned,
      overdue: this.#overdue,
      overflown: this.#overflown,
      spins: this.#spun,
      longest: this.#longest,
    };
  }

  #mayStartAtOnce(req: IncomingMessage): boolean {
    if (this.#waiting > 0 || this.#draining) return false;
    // pipelined requests come in one event, before the first handler's microtasks could be timed
    const socket = req.socket as Socket | undefined;
    if (socket !== undefined && socket === this.#lastAtOnce) return false;
    if (this.#monitor.turnAgeUs() >= BUDGET_US) return false;
    this.#lastAtOnce = socket;
    return true;
  }

  #push(ticket: Ticket, priority: DispatchPriority): void {
    this.#queued++;
    this.#fifo(priority).push(ticket);
    this.#count(1);
    if (this.#waiting > this.#longest) this.#longest = this.#waiting;
  }

  #fifo(priority: DispatchPriority): Fifo {
    if (priority === 'default') return this.#default;
    return priority === 'critical' ? this.#critical : this.#sheddable;
  }

  #takeLastBelow(priority: DispatchPriority): Ticket | undefined {
    if (priority === 'sheddable') return undefined;
    const ticket =
      this.#sheddable.pop() ?? (priority === 'critical' ? this.#default.pop() : undefined);
    if (ticket !== undefined) this.#count(-1);
    return ticket;
  }

  #shift(): Ticket | undefined {
    const ticket = this.#critical.shift() ?? this.#default.shift() ?? this.#sheddable.shift();
    if (ticket !== undefined) this.#count(-1);
    return ticket;
  }

  #count(change: number): void {
    this.#waiting += change;
    this.#monitor.keepAwake(this.#waiting > 0);
  }

  /** The end of a turn: time to start a handler, if the turn was a quiet one. */
  #turn(): void {
    this.#lastAtOnce = undefined;
    if (this.#waiting === 0 || this.#draining) return;
    const { connections, turnUs } = this.#monitor;
    const nowUs = this.#monitor.nowUs();
    // One poll reads every socket that has something, but accept() is called once per turn, and a new
    // socket is read in the turn after: one turn without a connection means that nobody is left outside.
    const quiet = connections === this.#connectionsSeen;
    this.#connectionsSeen = connections;
    // what the loop has done since handlers last ran: accepting and refusing, mostly
    if (this.#spins === 0) this.#otherSinceUs = Math.max(this.#drainEndedUs, nowUs - turnUs);
    if (this.#spins === 0) this.#spinBeganUs = nowUs;
    if (!quiet && this.#spins < MAX_SPINS && nowUs - this.#spinBeganUs < MAX_SPIN_US) {
      this.#spins++;
      this.#spun++;
      return;
    }
    this.#spins = 0;
    this.#budgetUs = Math.max(BUDGET_US, (nowUs - this.#otherSinceUs) / OTHERS_PER_HANDLERS);
    this.#drainBeganUs = nowUs;
    this.#draining = true;
    try {
      if (nowUs - this.#sweptUs >= SWEEP_US) this.#sweepAll(nowUs);
    } finally {
      this.#startNext();
    }
  }

  /** Frees the places of all who need not wait any longer, wherever they stand in the queue. */
  #sweepAll(nowUs: number): void {
    this.#sweptUs = nowUs;
    for (const fifo of [this.#critical, this.#default, this.#sheddable]) {
      const out = fifo.takeOut((ticket) => ticket.gone || ticket.deadlineUs <= nowUs);
      if (out === undefined) continue;
      this.#count(-out.length);
      for (const ticket of out) this.#dropped(ticket, nowUs);
    }
  }

  /** True if a ticket's client has left, or its deadline has passed: then that is its end. */
  #dropped(ticket: Ticket, nowUs: number): boolean {
    if (ticket.gone) {
      this.#abandoned++;
      ticket.abandon();
      return true;
    }
    if (ticket.deadlineUs > nowUs) return false;
    this.#overdue++;
    process.nextTick(refuseOverdue, ticket); // by itself: what the answering throws must not reach the others
    return true;
  }

  #startNext(): void {
    const ticket = this.#shift();
    if (ticket === undefined) {
      this.#endDrain();
      return;
    }
    try {
      if (!this.#dropped(ticket, this.#monitor.nowUs())) {
        this.#started++;
        ticket.start(); // what it throws goes where it would have gone without us
      }
    } finally {
      if (this.#waiting === 0) this.#endDrain();
      else process.nextTick(this.#settle);
    }
  }

  /**
   * Lets the handler's ticks and first microtasks go ahead before the clock is read. A tick between two
   * handlers, not a microtask: a handler started inside of a microtask would find its own ticks held back.
   */
  #settleHandler(): void {
    if (this.#hops++ < MICROTASK_HOPS) {
      void settled.then(this.#settle);
      return;
    }
    this.#hops = 0;
    process.nextTick(this.#goOn);
  }

  #continue(): void {
    if (this.#monitor.nowUs() - this.#drainBeganUs < this.#budgetUs) this.#startNext();
    else this.#endDrain(); // the sockets first
  }

  #endDrain(): void {
    this.#draining = false;
    this.#drainEndedUs = this.#monitor.nowUs();
  }
}
