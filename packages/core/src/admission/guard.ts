import { type Clock, systemClock } from '../clock.js';
import type { Rejection } from '../errors.js';
import { type OnEvent, quiet } from '../events.js';
import { createLimiter } from '../limiter/create.js';
import {
  configurableOf,
  type DeadlineLimiter,
  deadlineOf,
  estimatesOf,
  type Limiter,
  warningOf,
} from '../limiter/limiter.js';
import {
  type MaxConcurrency,
  type ParsedMaxConcurrency,
  parseMaxConcurrency,
  sameEngine,
} from '../limiter/max-concurrency.js';
import { LatencyHistogram } from '../metrics/latency-histogram.js';
import { RateMeter } from '../metrics/rate-meter.js';
import type { GuardSnapshot } from '../metrics/snapshot.js';
import { booleanOf, type FlagSnapshot, functionOf, having, knownKeys, textOf } from '../options.js';
import type { Outcome } from '../outcome.js';
import { type Random, systemRandom } from '../random.js';
import { systemTimers, type Timers } from '../timers.js';
import { Arrivals } from './arrivals.js';
import { type CallContext, type ExecuteOptions, executeGuarded } from './execute.js';
import { ForeignLimiter } from './foreign-limiter.js';
import { LoopRule, type LoopTurn } from './loop-rule.js';
import {
  CallPermit,
  type Entry,
  GIVEN_BACK,
  type Issuer,
  LET_THROUGH,
  type RevokeReason,
} from './permit.js';
import { ClassReserves, type Priority } from './priority.js';
import { Refusals } from './refusals.js';
import { processRegistry, type Registry, type SnapshotSource } from './registry.js';

/** What is known of a call when it asks to be admitted. Read, not checked: a guard never throws at a call. */
export interface AcquireOptions {
  /**
   * Time until the call's own deadline, counted from `arrivedUs`, in milliseconds. 0 and less: it has passed, and the call is
   * refused at once. NaN, and what is no number, is taken as absent. A deadline decides about its own call only: a refusal by it teaches no engine.
   */
  readonly timeoutMs?: number | undefined;
  /** @default 'default' */
  readonly priority?: Priority | undefined;
  /** When the call arrived, on the guard's clock, in microseconds; its latency counts from here. Now by default. */
  readonly arrivedUs?: number | undefined;
}

/** Counts calls in flight and admits them, or not. Made by {@link createGuard}. */
export interface Guard extends SnapshotSource {
  readonly name: string;
  /**
   * The most calls in flight right now: the engine's limit; less while the loop is overrun; more by the reserve for critical
   * calls, where classes are in use and the engine is adaptive.
   */
  readonly maxConcurrency: number;
  /** Calls admitted and not yet released. */
  readonly inflight: number;
  /** True while it decides and counts, but lets every call through. */
  readonly dryRun: boolean;
  /** Admits a call or refuses it. Never throws, never waits. */
  tryAcquire(options?: AcquireOptions): Entry;
  /**
   * Calls `fn` if it is admitted, and releases when it has settled: a returned value is a `success`; an exception a
   * `failure`, or `ignored` if it is another guard's or breaker's refusal.
   *
   * @throws RejectedError (`ERR_REJECTED`) when refused; `fn` is not called
   * @throws TimeoutError (`ERR_TIMEOUT`) after `timeoutMs`; a `failure`, and the slot returns when `fn` settles
   * @throws the reason of `signal`, when that aborts first; `abandoned`, and the slot returns when `fn` settles
   */
  execute<T>(
    fn: (context: CallContext) => T | PromiseLike<T>,
    options?: ExecuteOptions,
  ): Promise<T>;
  /** `fn` with every call of it going through `execute`. */
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
    options?: ExecuteOptions,
  ): (this: This, ...args: Args) => Promise<T>;
  snapshot(): GuardSnapshot;
  /**
   * Changes `limit` or `dryRun` under load. A limit of the type in use takes new options where it stands; another type is
   * a new engine, which hears nothing of calls begun before. Calls in flight stay counted.
   *
   * @throws TypeError or RangeError; then nothing has changed
   */
  configure(partial: GuardSettings): void;
  flags(): readonly FlagSnapshot[];
  /** Tells of one turn of the event loop. Whoever measures the loop calls this once per turn. */
  observeLoop(turn: LoopTurn): void;
}

/** What `configure` takes. */
export interface GuardSettings {
  /** @default 'auto' */
  readonly limit?: MaxConcurrency | undefined;
  /** Decides and counts, but lets every call through. @default false */
  readonly dryRun?: boolean | undefined;
}

/** What a guard is made of; `configure` changes the {@link GuardSettings} among it. */
export interface GuardOptions extends GuardSettings {
  /** Shown in snapshots, events and refusals. Use a route template, never a raw URL. @default 'guard' */
  readonly name?: string | undefined;
  /** Hears refusals (sampled), changed settings, and warnings. */
  readonly onEvent?: OnEvent | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** For jitter, and for engines that need chance. @default systemRandom */
  readonly random?: Random | undefined;
  /** For the timeouts of `execute`. @default systemTimers */
  readonly timers?: Timers | undefined;
  /** Where the guard is listed; `false` for nowhere. @default processRegistry() */
  readonly registry?: Registry | false | undefined;
}

export const GUARD_DEFAULTS = {
  limit: 'auto',
  dryRun: false,
  name: 'guard',
  onEvent: undefined,
  clock: systemClock,
  random: systemRandom,
  timers: systemTimers,
  registry: undefined,
} as const satisfies { [K in keyof Required<GuardOptions>]: GuardOptions[K] };

const LIVE = { limit: true, dryRun: true };

/** What the engines and rules say of a call. */
const ADMIT = 0;
const OVER_LIMIT = 1;
const OVER_LOOP_CAP = 2;
const TOO_LATE = 3;
type Verdict = typeof ADMIT | typeof OVER_LIMIT | typeof OVER_LOOP_CAP | typeof TOO_LATE;

const NOTHING_KNOWN: AcquireOptions = {};

/** Makes a guard: one for each method, route or resource that gets a limit of its own. */
export function createGuard(options: GuardOptions = {}): Guard {
  return new CallGuard(options, undefined);
}

/** The guard behind `createGuard` and `createGuards`. */
export class CallGuard implements Guard, Issuer {
  // set once
  readonly name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #timers: Timers;
  readonly #onEvent: OnEvent | undefined;
  readonly #server: CallGuard | undefined;
  readonly #refusals: Refusals;
  readonly #reserves = new ClassReserves();
  readonly #loop = new LoopRule();
  readonly #latencies = new LatencyHistogram();
  readonly #meter: RateMeter;
  readonly #arrivals = new Arrivals();
  /** Codes that were told. */
  readonly #warned = new Set<string>();
  // moves when configured
  #limit: MaxConcurrency;
  #parsed: ParsedMaxConcurrency;
  /** What was built, or given: its options, estimates and flags. */
  #engine: Limiter;
  /** The same, asked and taught at every call: if it is somebody else's, what it throws is kept from the calls. */
  #limiter: Limiter;
  /** The same once more, if it has a timeout of its own. */
  #deadline: DeadlineLimiter | undefined;
  #dryRun: boolean;
  /** The most that an adaptive engine may ever set; 0 for an engine whose limit is someone's word. */
  #ceiling: number;
  /** Which engine is in use, counted from 1: what an earlier one admitted, this one does not hear of. */
  #epoch = 1;
  // moves with every call
  #inflight = 0;
  #letThrough = 0;
  #revoked = 0;
  #wouldReject = 0;
  #success = 0;
  #failure = 0;
  #ignored = 0;
  #abandoned = 0;
  // since the last turn of the loop
  #peak = 0;
  #endedBefore = 0;

  /** @param server - the guard of the whole server, asked before this one */
  constructor(options: GuardOptions, server: CallGuard | undefined) {
    const resolved = resolveGuardOptions(options);
    this.name = resolved.name;
    this.#clock = resolved.clock;
    this.#random = resolved.random;
    this.#timers = resolved.timers;
    this.#onEvent = quiet(resolved.onEvent);
    this.#server = server;
    this.#limit = resolved.limit;
    this.#parsed = parseMaxConcurrency(resolved.limit);
    this.#dryRun = resolved.dryRun;
    const nowUs = this.#clock.nowUs();
    this.#engine = createLimiter(this.#parsed, { random: this.#random, nowUs });
    this.#limiter = shielded(this.#engine, this.#parsed);
    this.#deadline = deadlineOf(this.#limiter);
    this.#ceiling = ceilingOf(this.#engine);
    this.#meter = new RateMeter(nowUs);
    this.#latencies.roll(nowUs);
    this.#refusals = new Refusals(
      this.name,
      this.#random,
      (atUs) => this.#backlog(atUs),
      this.#onEvent,
    );
    if (resolved.registry !== false) (resolved.registry ?? processRegistry()).add(this);
  }

  get maxConcurrency(): number {
    return Math.min(this.#limiter.maxConcurrency + this.#reserves.onTop, this.#loop.cap);
  }

  get inflight(): number {
    return this.#inflight + this.#letThrough;
  }

  get dryRun(): boolean {
    return this.#dryRun;
  }

  nowUs(): number {
    return this.#clock.nowUs();
  }

  tryAcquire(options?: AcquireOptions | null): Entry {
    const nowUs = this.#clock.nowUs();
    const { arrivedUs: stamp, timeoutMs, priority: asked } = options ?? NOTHING_KNOWN;
    // neither in the future nor at no time at all, and a number: what is no use counts as absent
    const arrivedUs =
      typeof stamp === 'number' && stamp <= nowUs && stamp > -Infinity ? stamp : nowUs;
    const priority = asked === 'critical' || asked === 'sheddable' ? asked : 'default';
    const remainingUs =
      typeof timeoutMs === 'number' ? leftUs(timeoutMs, nowUs - arrivedUs) : Infinity;

    if (this.#server !== undefined) {
      return this.#acquireBoth(this.#server, nowUs, arrivedUs, remainingUs, priority);
    }
    const verdict = this.#judge(nowUs, arrivedUs, remainingUs, priority);
    return verdict === ADMIT || this.#dryRun
      ? this.#admit(verdict, nowUs, arrivedUs, priority, undefined)
      : this.#refuse('concurrency', verdict, nowUs);
  }

  execute<T>(
    fn: (context: CallContext) => T | PromiseLike<T>,
    options?: ExecuteOptions,
  ): Promise<T> {
    return executeGuarded(this, fn, options, this.#timers);
  }

  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
    options?: ExecuteOptions,
  ): (this: This, ...args: Args) => Promise<T> {
    functionOf('wrap', fn);
    const execute = (run: () => T | PromiseLike<T>) => this.execute(run, options);
    const guarded = function (this: This, ...args: Args): Promise<T> {
      return execute(() => fn.apply(this, args));
    };
    // frameworks read these two
    Object.defineProperty(guarded, 'name', { value: fn.name, configurable: true });
    Object.defineProperty(guarded, 'length', { value: fn.length, configurable: true });
    return guarded;
  }

  observeLoop(turn: LoopTurn): void {
    const nowUs = this.#clock.nowUs();
    const ended = this.#ended();
    this.#loop.observe(
      {
        turnUs: turn.turnUs,
        idled: turn.idled,
        peak: this.#peak,
        ended: ended - this.#endedBefore,
      },
      this.#limiter.maxConcurrency,
      nowUs,
    );
    this.#endedBefore = ended;
    this.#peak = this.inflight;
  }

  snapshot(): GuardSnapshot {
    const nowUs = this.#clock.nowUs();
    this.#tick(nowUs);
    const oldestUs = this.#arrivals.oldestUs();
    const { inflight } = this;
    return {
      type: 'guard',
      name: this.name,
      limiter: this.#parsed.type,
      maxConcurrency: this.maxConcurrency,
      inflight,
      admitted: inflight + this.#ended() + this.#revoked,
      revoked: this.#revoked,
      rejected: this.#refusals.counts(),
      wouldReject: this.#wouldReject,
      dryRun: this.#dryRun,
      outcomes: {
        success: this.#success,
        failure: this.#failure,
        ignored: this.#ignored,
        abandoned: this.#abandoned,
      },
      latency: this.#latencies.snapshot(nowUs),
      qps: this.#meter.finishedPerSecond(nowUs),
      oldestInflightMs: Math.max(0, nowUs - oldestUs) / 1000,
      loopDelayMs: this.#loop.delayMs(nowUs),
      estimates: estimatesOf(this.#engine) ?? null,
    };
  }

  configure(partial: GuardSettings): void {
    knownKeys(`guard ${this.name}`, partial, LIVE);
    const { limit, dryRun } = partial;
    if (dryRun !== undefined) booleanOf('guard.dryRun', dryRun);
    if (limit !== undefined) this.#setLimit(limit);
    if (dryRun !== undefined) this.#dryRun = dryRun;
    this.#onEvent?.({ type: 'configure', name: this.name, changed: { ...partial } });
  }

  flags(): readonly FlagSnapshot[] {
    return [
      {
        name: 'limit',
        value: this.#limit,
        default: GUARD_DEFAULTS.limit,
        live: true,
      },
      {
        name: 'dryRun',
        value: this.#dryRun,
        default: GUARD_DEFAULTS.dryRun,
        live: true,
      },
      ...(configurableOf(this.#engine)?.flags() ?? []),
    ];
  }

  #ended(): number {
    return this.#success + this.#failure + this.#ignored + this.#abandoned;
  }

  // what permits call back

  returned(
    permit: CallPermit,
    outcome: Outcome,
    excludedUs: number,
    nowUs = this.#clock.nowUs(), // read here: a number for a function that V8 does not put in line is an object
  ): void {
    const { epoch } = permit;
    let latencyUs = nowUs - this.#arrivals.at(permit.place);
    this.#takeBack(permit);
    if (nowUs >= this.#meter.slotEndUs) this.#tick(nowUs);
    if (typeof excludedUs === 'number' && excludedUs > 0) {
      latencyUs = Math.max(0, Math.floor(latencyUs - excludedUs));
    }
    this.#meter.finished++;
    let known = outcome;
    if (outcome === 'success') {
      this.#success++;
      this.#latencies.add(latencyUs);
    } else known = this.#unsuccessful(outcome, latencyUs);
    if (epoch === this.#epoch) this.#limiter.record(known, latencyUs, nowUs, permit.inflight);
    const { outer } = permit;
    if (outer !== undefined && outer.epoch !== GIVEN_BACK) {
      outer.issuer.returned(outer, outcome, excludedUs, nowUs);
    }
  }

  /** @returns the outcome, or `ignored` for what is none, from untyped code: it cannot say how its call went */
  #unsuccessful(outcome: Outcome, latencyUs: number): Outcome {
    if (outcome === 'failure') {
      this.#failure++;
      this.#latencies.add(latencyUs);
    } else if (outcome === 'abandoned') this.#abandoned++;
    else {
      this.#ignored++;
      return 'ignored';
    }
    return outcome;
  }

  revoked(permit: CallPermit, reason: RevokeReason, nowUs: number): Rejection {
    if (permit.epoch === GIVEN_BACK) return this.#refusals.answer(reason, nowUs);
    this.#revoked++;
    this.#endUnstarted(permit, nowUs);
    return this.#refusals.refuse(reason, nowUs);
  }

  abandoned(permit: CallPermit, nowUs: number): void {
    this.#abandoned++;
    this.#endUnstarted(permit, nowUs);
  }

  /** An engine that counts starts must see the end of each; 'ignored' teaches nothing. */
  #endUnstarted(permit: CallPermit, nowUs: number): void {
    const { epoch } = permit;
    const latencyUs = nowUs - this.#arrivals.at(permit.place);
    this.#takeBack(permit);
    if (nowUs >= this.#meter.slotEndUs) this.#tick(nowUs);
    if (epoch !== this.#epoch) return;
    this.#limiter.record('ignored', latencyUs, nowUs, permit.inflight);
  }

  // the path of a call

  /** The server is asked first; a slot of it is taken only for a call that has one here, too. */
  #acquireBoth(
    server: CallGuard,
    nowUs: number,
    arrivedUs: number,
    remainingUs: number,
    priority: Priority,
  ): Entry {
    // a call that came too late is refused here; a dry run lets it through, and the server has still to have room
    const carriedUs = remainingUs <= 0 && this.#dryRun ? Infinity : remainingUs;
    const ofServer = carriedUs > 0 ? server.#judge(nowUs, arrivedUs, carriedUs, priority) : ADMIT;
    if (ofServer !== ADMIT && !server.#dryRun) return server.#refuse('server', ofServer, nowUs);
    const verdict = this.#judge(nowUs, arrivedUs, remainingUs, priority);
    if (verdict !== ADMIT && !this.#dryRun) return this.#refuse('concurrency', verdict, nowUs);
    const outer = server.#admit(ofServer, nowUs, arrivedUs, priority, undefined);
    return this.#admit(verdict, nowUs, arrivedUs, priority, outer);
  }

  #judge(nowUs: number, arrivedUs: number, carriedUs: number, priority: Priority): Verdict {
    const remainingUs =
      nowUs > arrivedUs ? this.#withinOwn(carriedUs, nowUs - arrivedUs) : carriedUs;
    if (remainingUs <= 0) return TOO_LATE;
    if (nowUs >= this.#meter.slotEndUs) this.#tick(nowUs);
    const limiter = this.#limiter;
    // a dry run plays a world in which the calls that it let through had been refused
    let inflight = 1 + this.#inflight + (this.#dryRun ? 0 : this.#letThrough);
    if (priority !== 'default') this.#reserves.inUse = true;
    if (this.#reserves.inUse) inflight = this.#weighed(inflight, priority);
    if (inflight > this.#loop.cap) return OVER_LOOP_CAP;
    if (limiter.admits(inflight, nowUs, remainingUs)) return ADMIT;
    // would it have been admitted, had it carried no deadline?
    if (remainingUs !== Infinity && limiter.admits(inflight, nowUs, Infinity)) return TOO_LATE;
    return OVER_LIMIT;
  }

  /** An engine's own timeout runs from the arrival too: what passed unseen before now is gone. */
  #withinOwn(carriedUs: number, waitedUs: number): number {
    const deadline = this.#deadline;
    return deadline === undefined ? carriedUs : Math.min(carriedUs, deadline.timeoutUs - waitedUs);
  }

  /** The calls in flight as the engine is asked about them for this class: whole calls, and one at least. */
  #weighed(inflight: number, priority: Priority): number {
    const { maxConcurrency } = this.#limiter;
    const reserves = this.#reserves;
    const offset = reserves.offsetOf(priority, maxConcurrency, this.#ceiling, this.#inflight);
    return Math.max(1, inflight + offset);
  }

  #admit(
    verdict: Verdict,
    nowUs: number,
    arrivedUs: number,
    priority: Priority,
    outer: CallPermit | undefined,
  ): CallPermit {
    if (verdict !== ADMIT) return this.#admitAnyway(verdict, nowUs, arrivedUs, priority, outer);
    const inflight = ++this.#inflight + (this.#dryRun ? 0 : this.#letThrough);
    if (inflight > this.#peak) this.#peak = inflight;
    if (priority !== 'default') this.#reserves.taken(priority);
    this.#limiter.started(nowUs, inflight);
    const place = this.#arrivals.add(arrivedUs);
    return new CallPermit(this, inflight, place, this.#epoch, priority, outer);
  }

  #admitAnyway(
    verdict: Verdict,
    nowUs: number,
    arrivedUs: number,
    priority: Priority,
    outer: CallPermit | undefined,
  ): CallPermit {
    this.#wouldReject++;
    this.#letThrough++;
    if (verdict === OVER_LIMIT) this.#limiter.refused(nowUs);
    const place = this.#arrivals.add(arrivedUs);
    return new CallPermit(this, this.inflight, place, LET_THROUGH, priority, outer);
  }

  #refuse(full: 'concurrency' | 'server', verdict: Verdict, nowUs: number): Rejection {
    if (verdict === OVER_LIMIT) this.#limiter.refused(nowUs);
    this.#meter.refused++;
    return this.#refusals.refuse(verdict === TOO_LATE ? 'deadline' : full, nowUs);
  }

  #takeBack(permit: CallPermit): void {
    this.#arrivals.remove(permit.place);
    if (permit.epoch === LET_THROUGH) this.#letThrough--;
    else {
      this.#inflight--;
      if (permit.priority !== 'default') this.#reserves.returned(permit.priority);
    }
    permit.epoch = GIVEN_BACK;
  }

  /** Twice a second, on the back of a call: what would otherwise need a timer. */
  #tick(nowUs: number): void {
    this.#meter.roll(nowUs);
    this.#latencies.roll(nowUs);
    this.#loop.lapse(nowUs);
    if (this.#onEvent !== undefined) this.#warn(this.#onEvent);
  }

  #warn(onEvent: OnEvent): void {
    const warning = warningOf(this.#limiter);
    if (warning === undefined || this.#warned.has(warning.code)) return;
    this.#warned.add(warning.code);
    onEvent({ type: 'warning', name: this.name, code: warning.code, message: warning.message });
  }

  #backlog(nowUs: number): { excess: number; finishedPerSecond: number } {
    // over the limit, since it fell or for a dry run, and what a second brings that cannot be served
    const over = Math.max(0, this.inflight - this.maxConcurrency);
    return {
      excess: over + this.#meter.refusedPerSecond(nowUs),
      finishedPerSecond: this.#meter.finishedPerSecond(nowUs),
    };
  }

  #setLimit(limit: MaxConcurrency): void {
    const parsed = parseMaxConcurrency(limit);
    const standing = sameEngine(this.#parsed, parsed) ? configurableOf(this.#engine) : undefined;
    if (standing !== undefined) standing.configure(parsed.given);
    else if (parsed.engine !== 'custom' || parsed.limiter !== this.#engine) {
      this.#engine = createLimiter(parsed, { random: this.#random, nowUs: this.#clock.nowUs() });
      this.#limiter = shielded(this.#engine, parsed);
      this.#deadline = deadlineOf(this.#limiter);
      this.#epoch++;
    }
    this.#ceiling = ceilingOf(this.#engine);
    this.#reserves.forget();
    this.#parsed = parsed;
    this.#limit = limit;
  }
}

/** Our own engines do not throw, and need not pay for it. */
function shielded(engine: Limiter, { engine: kind }: ParsedMaxConcurrency): Limiter {
  return kind === 'custom' || kind === 'registered' ? new ForeignLimiter(engine) : engine;
}

function ceilingOf(limiter: Limiter): number {
  if (estimatesOf(limiter) === undefined) return 0;
  const flag = configurableOf(limiter)
    ?.flags()
    .find(({ name }) => name === 'maxConcurrency');
  return typeof flag?.value === 'number' ? flag.value : 0;
}

/** Checks the options and fills in the defaults. */
export function resolveGuardOptions(options: GuardOptions = {}): {
  readonly limit: MaxConcurrency;
  readonly dryRun: boolean;
  readonly name: string;
  readonly onEvent: OnEvent | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly registry: Registry | false | undefined;
} {
  knownKeys('guard', options, GUARD_DEFAULTS);
  const { limit = GUARD_DEFAULTS.limit, onEvent, registry } = options;
  const clock = options.clock ?? GUARD_DEFAULTS.clock;
  const timers = options.timers ?? GUARD_DEFAULTS.timers;
  having('guard.clock', clock, ['nowUs']);
  having('guard.timers', timers, ['setTimeout', 'clearTimeout']);
  if (onEvent !== undefined) functionOf('guard.onEvent', onEvent);
  if (registry !== undefined && registry !== false) {
    having('guard.registry', registry, ['add', 'remove', 'sources']);
  }
  return {
    limit,
    dryRun: booleanOf('guard.dryRun', options.dryRun ?? GUARD_DEFAULTS.dryRun),
    name: textOf('guard.name', options.name ?? GUARD_DEFAULTS.name),
    onEvent,
    clock,
    random: functionOf('guard.random', options.random ?? GUARD_DEFAULTS.random),
    timers,
    registry,
  };
}

function leftUs(timeoutMs: number, elapsedUs: number): number {
  const left = timeoutMs * 1000 - elapsedUs;
  // NaN is no deadline
  return left <= 0 || left > 0 ? left : Infinity;
}
