import type { Random } from '@elimit/core';
import { seededRandom } from '@elimit/testkit';
import type { Admission } from './admission.js';
import { type Draw, drawFrom } from './distribution.js';
import { EventQueue } from './event-queue.js';
import { meanOfSmaller, OverTime } from './over-time.js';
import type { PriorityClass, Scenario } from './scenario.js';

/** What was seen in one window of one run. */
export interface WindowFigures {
  /** Arrivals, retries included. */
  readonly offered: number;
  /** Share of the arrivals that were refused. */
  readonly refused: number;
  /** The same for each class; empty without classes. */
  readonly refusedOf: Readonly<Partial<Record<PriorityClass, number>>>;
  /** Answers in time ÷ what an ideal plant would have given. */
  readonly goodput: number;
  /** Share of the answers that came after their deadline. */
  readonly late: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly meanLimit: number;
  /** Largest ÷ smallest one-minute mean of the limit, less 1. */
  readonly limitDrift: number;
}

export interface RunFigures {
  readonly windows: readonly WindowFigures[];
  /** Arrivals and completions of stages: the work the simulator did. */
  readonly events: number;
}

/** Called about ten times per simulated second, for whoever wants to look. */
export type Watch = (nowS: number, limit: number, inflight: number) => void;

const ARRIVES_AGAIN = -1;
/** An event that is no call: the number of servers may have changed. */
const COUNT_CHANGES = -1;
/** How often a count that ramps is looked at. */
const RAMP_STEP_S = 0.02;

/** Runs one scenario against an admission, on a clock of its own. The same seed gives the same arrivals to every arm. */
export function simulate(
  scenario: Scenario,
  admissionOf: (random: Random, startUs: number) => Admission,
  seed: number,
  watch?: Watch,
): RunFigures {
  return new Simulation(scenario, admissionOf, seed, watch).run();
}

class Servers {
  readonly count: OverTime;
  readonly waiting = new Fifo();
  busy = 0;
  constructor(count: OverTime) {
    this.count = count;
  }
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #admission: Admission;
  readonly #watch: Watch | undefined;
  readonly #events = new EventQueue();
  readonly #windows: Window[];
  readonly #stages: { readonly servers: Servers | undefined; readonly draw: Draw }[];
  readonly #rate: OverTime;
  // a stream of chance for each purpose: what one arm draws does not move what another sees
  readonly #arrivals: Random;
  readonly #fates: Random;
  // the calls, by number
  readonly #free: number[] = [];
  #calls = 0;
  #stage = new Int32Array(1024);
  #tries = new Int32Array(1024);
  #fails = new Uint8Array(1024);
  #priority = new Uint8Array(1024);
  #arrivedUs = new Float64Array(1024);
  #deadlineUs = new Float64Array(1024);
  // what moves
  #nowUs = 0;
  #inflight = 0;
  #count = 0;

  constructor(
    scenario: Scenario,
    admissionOf: (random: Random, startUs: number) => Admission,
    seed: number,
    watch: Watch | undefined,
  ) {
    const stream = (purpose: number): Random =>
      seededRandom(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(purpose, 0x85ebca6b));
    this.#scenario = scenario;
    this.#watch = watch;
    this.#arrivals = stream(1);
    this.#fates = stream(2);
    this.#rate = new OverTime(scenario.rate);
    this.#stages = scenario.stages.map(({ kind, count, serviceMs }, i) => ({
      servers: kind === 'servers' ? new Servers(new OverTime(count ?? 1)) : undefined,
      draw: drawFrom(serviceMs, stream(10 + i)),
    }));
    this.#windows = scenario.measureS.map(([fromS, toS]) => new Window(scenario, fromS, toS));
    this.#admission = admissionOf(stream(3), 0);
  }

  run(): RunFigures {
    const endUs = this.#scenario.durationS * 1e6;
    this.#planCounts();
    let arrivalUs = this.#nextArrival();
    let lookUs = 0;
    for (;;) {
      const eventUs = this.#events.nextTime;
      this.#nowUs = Math.min(arrivalUs, eventUs);
      if (this.#nowUs >= endUs) break;
      if (this.#watch !== undefined && this.#nowUs >= lookUs) {
        this.#watch(this.#nowUs / 1e6, this.#admission.limit, this.#inflight);
        lookUs += 1e5;
      }
      this.#count++;
      if (arrivalUs <= eventUs) {
        this.#arrive(this.#newCall());
        arrivalUs = this.#nextArrival();
        continue;
      }
      const call = this.#events.pop();
      if (call === COUNT_CHANGES) this.#startWaiting();
      else if (this.#stage[call] === ARRIVES_AGAIN) this.#arrive(call);
      else this.#stageDone(call);
    }
    return { windows: this.#windows.map((window) => window.figures()), events: this.#count };
  }

  #nextArrival(): number {
    return 1e6 * this.#rate.whenGrownBy(-Math.log(1 - this.#arrivals()), this.#nowUs / 1e6);
  }

  #planCounts(): void {
    for (const { servers } of this.#stages) {
      if (servers === undefined || servers.count.isConstant) continue;
      const { durationS } = this.#scenario;
      for (const s of servers.count.breaks(0, durationS)) this.#events.push(s * 1e6, COUNT_CHANGES);
      const { count } = this.#scenario.stages.find((stage) => stage.count !== undefined) as {
        count: unknown;
      };
      if (typeof count === 'object' && count !== null && 'ramp' in count) {
        for (let s = 0; s < durationS; s += RAMP_STEP_S) this.#events.push(s * 1e6, COUNT_CHANGES);
      }
    }
  }

  #newCall(): number {
    const call = this.#free.pop() ?? this.#calls++;
    if (call >= this.#stage.length) this.#grow();
    const { failures, classes, deadlineMs } = this.#scenario;
    this.#tries[call] = 0;
    this.#fails[call] = failures !== undefined && this.#fates() < failures.share ? 1 : 0;
    this.#priority[call] =
      classes === undefined
        ? 1
        : PRIORITIES.indexOf((pick(classes, this.#fates()) as { name: PriorityClass }).name);
    this.#deadlineUs[call] =
      1000 *
      (typeof deadlineMs === 'number'
        ? deadlineMs
        : (pick(deadlineMs, this.#fates()) as { ms: number }).ms);
    return call;
  }

  #arrive(call: number): void {
    const { carry, failures } = this.#scenario;
    const nowUs = Math.floor(this.#nowUs);
    const priority = this.#priority[call] as number;
    const admitted = this.#admission.admit(
      call,
      nowUs,
      carry === true ? (this.#deadlineUs[call] as number) : Infinity,
      PRIORITIES[priority] as PriorityClass,
    );
    for (const window of this.#windows)
      window.arrival(this.#nowUs, priority, admitted, this.#admission.limit);
    if (!admitted) {
      this.#refused(call);
      return;
    }
    this.#inflight++;
    this.#arrivedUs[call] = this.#nowUs;
    if (this.#fails[call] === 0) {
      this.#enter(call, 0);
      return;
    }
    const failedAfterUs = (failures?.latencyMs ?? 0) * 1000;
    this.#stage[call] = this.#stages.length; // behind the last stage
    this.#events.push(this.#nowUs + failedAfterUs, call);
  }

  #refused(call: number): void {
    const { retries } = this.#scenario;
    const tries = (this.#tries[call] as number) + 1;
    if (retries === undefined || tries > retries.times) {
      this.#free.push(call);
      return;
    }
    const [from, to] = retries.afterMs;
    this.#tries[call] = tries;
    this.#stage[call] = ARRIVES_AGAIN;
    this.#events.push(this.#nowUs + 1000 * (from + (to - from) * this.#fates()), call);
  }

  #enter(call: number, stage: number): void {
    this.#stage[call] = stage;
    const servers = this.#stages[stage]?.servers;
    if (servers !== undefined && servers.busy >= this.#serversNow(servers))
      servers.waiting.push(call);
    else this.#start(call, stage);
  }

  #start(call: number, stage: number): void {
    const { servers, draw } = this.#stages[stage] as { servers: Servers | undefined; draw: Draw };
    const { degrade } = this.#scenario;
    let serviceUs = draw(this.#nowUs);
    if (servers !== undefined) servers.busy++;
    if (degrade !== undefined && this.#inflight > degrade.above) {
      serviceUs *= 1 + (degrade.slope * (this.#inflight - degrade.above)) / degrade.above;
    }
    this.#events.push(this.#nowUs + serviceUs, call);
  }

  #stageDone(call: number): void {
    const stage = this.#stage[call] as number;
    const servers = this.#stages[stage]?.servers;
    if (servers !== undefined) {
      servers.busy--;
      this.#startFrom(servers, stage);
    }
    if (stage + 1 < this.#stages.length) this.#enter(call, stage + 1);
    else this.#finish(call);
  }

  #finish(call: number): void {
    const failed = this.#fails[call] === 1;
    const latencyUs = this.#nowUs - (this.#arrivedUs[call] as number);
    const inTime = latencyUs <= (this.#deadlineUs[call] as number);
    this.#inflight--;
    for (const window of this.#windows) window.completion(this.#nowUs, latencyUs, inTime, failed);
    this.#admission.end(call, failed ? 'failure' : 'success', Math.floor(this.#nowUs));
    this.#free.push(call);
  }

  #startWaiting(): void {
    this.#stages.forEach(({ servers }, stage) => {
      if (servers !== undefined) this.#startFrom(servers, stage);
    });
  }

  #startFrom(servers: Servers, stage: number): void {
    while (servers.waiting.size > 0 && servers.busy < this.#serversNow(servers)) {
      this.#start(servers.waiting.shift(), stage);
    }
  }

  #serversNow(servers: Servers): number {
    return Math.floor(servers.count.at(this.#nowUs / 1e6));
  }

  #grow(): void {
    const size = this.#stage.length * 2;
    this.#stage = longer(this.#stage, new Int32Array(size));
    this.#tries = longer(this.#tries, new Int32Array(size));
    this.#fails = longer(this.#fails, new Uint8Array(size));
    this.#priority = longer(this.#priority, new Uint8Array(size));
    this.#arrivedUs = longer(this.#arrivedUs, new Float64Array(size));
    this.#deadlineUs = longer(this.#deadlineUs, new Float64Array(size));
  }
}

const PRIORITIES: readonly PriorityClass[] = ['critical', 'default', 'sheddable'];

function pick<T extends { readonly share: number }>(list: readonly T[], chance: number): T {
  let left = chance;
  for (const one of list) {
    left -= one.share;
    if (left < 0) return one;
  }
  return list.at(-1) as T;
}

/** Counts what falls into one window. */
class Window {
  readonly #fromUs: number;
  readonly #toUs: number;
  readonly #ideal: number;
  readonly #hasClasses: boolean;
  readonly #offered = [0, 0, 0];
  readonly #refused = [0, 0, 0];
  readonly #minutes: { sum: number; count: number }[] = [];
  #inTime = 0;
  #late = 0;
  #latencies = new Float64Array(4096);
  #finished = 0;

  constructor(scenario: Scenario, fromS: number, toS: number) {
    this.#fromUs = fromS * 1e6;
    this.#toUs = toS * 1e6;
    this.#hasClasses = scenario.classes !== undefined;
    const perS = meanOfSmaller(
      new OverTime(scenario.rate),
      new OverTime(scenario.capacity),
      fromS,
      toS,
    );
    this.#ideal = perS * (1 - (scenario.failures?.share ?? 0)) * (toS - fromS);
  }

  arrival(nowUs: number, priority: number, admitted: boolean, limit: number): void {
    if (nowUs < this.#fromUs || nowUs >= this.#toUs) return;
    (this.#offered[priority] as number)++;
    if (!admitted) (this.#refused[priority] as number)++;
    const minute = Math.floor((nowUs - this.#fromUs) / 60e6);
    this.#minutes[minute] ??= { sum: 0, count: 0 };
    const mean = this.#minutes[minute];
    mean.sum += limit;
    mean.count++;
  }

  completion(nowUs: number, latencyUs: number, inTime: boolean, failed: boolean): void {
    if (nowUs < this.#fromUs || nowUs >= this.#toUs) return;
    if (!inTime) this.#late++;
    else if (!failed) this.#inTime++;
    if (this.#finished === this.#latencies.length) {
      this.#latencies = longer(this.#latencies, new Float64Array(this.#finished * 2));
    }
    this.#latencies[this.#finished++] = latencyUs;
  }

  figures(): WindowFigures {
    const sorted = this.#latencies.subarray(0, this.#finished).toSorted();
    const quantileMs = (q: number): number =>
      sorted.length === 0
        ? 0
        : (sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] as number) / 1000;
    const offered = sum(this.#offered);
    const minutes = this.#minutes
      .filter((minute) => minute.count > 0)
      .map((minute) => minute.sum / minute.count);
    const limits = this.#minutes.reduce((total, minute) => total + minute.sum, 0);
    const refusedOf: Partial<Record<PriorityClass, number>> = {};
    if (this.#hasClasses) {
      PRIORITIES.forEach((name, i) => {
        if ((this.#offered[i] as number) > 0)
          refusedOf[name] = (this.#refused[i] as number) / (this.#offered[i] as number);
      });
    }
    return {
      offered,
      refused: offered === 0 ? 0 : sum(this.#refused) / offered,
      refusedOf,
      goodput: this.#inTime / this.#ideal,
      late: this.#finished === 0 ? 0 : this.#late / this.#finished,
      p50Ms: quantileMs(0.5),
      p99Ms: quantileMs(0.99),
      meanLimit: offered === 0 ? 0 : limits / offered,
      limitDrift: minutes.length === 0 ? 0 : Math.max(...minutes) / Math.min(...minutes) - 1,
    };
  }
}

function sum(list: readonly number[]): number {
  return list.reduce((total, one) => total + one, 0);
}

/** First in, first out, on a growing ring. */
class Fifo {
  #ring = new Int32Array(256);
  #head = 0;
  size = 0;

  push(value: number): void {
    if (this.size === this.#ring.length) {
      const ring = new Int32Array(2 * this.size);
      for (let i = 0; i < this.size; i++)
        ring[i] = this.#ring[(this.#head + i) % this.size] as number;
      this.#ring = ring;
      this.#head = 0;
    }
    this.#ring[(this.#head + this.size++) % this.#ring.length] = value;
  }

  shift(): number {
    const value = this.#ring[this.#head] as number;
    this.#head = (this.#head + 1) % this.#ring.length;
    this.size--;
    return value;
  }
}

function longer<T extends Int32Array | Uint8Array | Float64Array>(old: T, next: T): T {
  next.set(old);
  return next;
}
