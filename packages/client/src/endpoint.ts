import type http from 'node:http';
import {
  type Breaker,
  type BreakerChange,
  type BreakerOptions,
  type BreakerState,
  type Clock,
  type ClusterNode,
  createBreaker,
  type ElimitEvent,
  type EndpointSnapshot,
  type FlagSnapshot,
  NO_TOKEN,
  type OnEvent,
  type Outcome,
  type Random,
  type Registry,
  type SnapshotSource,
  type TimerHandle,
  type Timers,
  tell,
} from '@elimit/core';
import { createAgent, dropIdle, retire, type TlsOptions } from './agent.js';
import { type Probe, startHealthCheck } from './health-check.js';
import { LoadLatency } from './load-latency.js';
import type { Verdict } from './verdict.js';

/** How an isolated endpoint is asked whether it is back. */
export interface HealthCheck {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly path: string | undefined;
  readonly probe: Probe;
}

/** Everything an endpoint is made from. */
export interface EndpointSettings {
  readonly key: string;
  readonly url: URL;
  readonly host: string | undefined;
  readonly weight: number;
  readonly connectionGroup: string;
  readonly tls: TlsOptions;
  readonly breaker: BreakerOptions;
  readonly connectTimeoutsAsUnreachable: number;
  /** Without one an isolation ends by time alone, and real calls are the trial. */
  readonly healthCheck: HealthCheck | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** Connections of a transport's own, kept with the endpoint. */
export interface Connections {
  /** Closes those on which nothing runs. */
  dropIdle(): void;
  /** Closes those at once, and the others as soon as they are free. */
  retire(): void;
}

/** What an endpoint's breaker asks its channel about the other endpoints. */
export interface Neighbours {
  /** True if the channel's cap on how many of its endpoints may be out leaves room for this one. */
  mayOpen(endpoint: Endpoint): boolean;
  /** How many of the others are well, as `Fellows` tells it. */
  wellRatio(endpoint: Endpoint, nowUs: number, commonFaultUs: number): number;
}

/** How one try on an endpoint ended, and what its channel wants made of it. */
export interface EndedTry {
  readonly verdict: Verdict;
  readonly latencyUs: number;
  /** How long the try was allowed to take. */
  readonly allowedUs: number;
  readonly token: number;
  /** Whether failures count towards isolation by error cost. */
  readonly errorCost: boolean;
  readonly neighbours: Neighbours;
  /** How long the endpoint wants to be left alone, in milliseconds. */
  readonly deferMs: number;
}

/** Calls whose latency makes up the mean: a plain mean at first, then smoothed. */
const MEAN_OVER = 16;
const SNAPSHOT_CAUSES: Readonly<Record<string, string>> = { trialTimeout: 'trial' };

/**
 * One target of calls: an origin with its breaker, its health check and its connections. Shared by all
 * channels of the process with the same key.
 */
export class Endpoint implements SnapshotSource, ClusterNode {
  // set once
  readonly settings: EndpointSettings;
  readonly origin: string;
  readonly #breaker: Breaker;
  readonly #loadLatency = new LoadLatency();
  readonly #agents = new Map<number, http.Agent>();
  readonly #connections = new Map<symbol, Connections>();
  readonly #registries = new Set<Registry>();
  readonly #disposed: () => void;
  // moves with channels that come and go
  readonly #holders = new Map<symbol, OnEvent | undefined>();
  readonly #warned = new Set<string>();
  #isDisposed = false;
  // moves with every change of state
  #reason = '';
  #recentErrors = 0;
  #isolationTimer: TimerHandle;
  #stopHealthCheck: (() => void) | undefined;
  // moves with every try
  #inflight = 0;
  #calls = 0;
  #failures = 0;
  #refusals = 0;
  #connectTimeouts = 0;
  #deferredUntilUs = Number.NEGATIVE_INFINITY;
  #meanLatencyUs = 0;
  #answers = 0;
  #costIsFed = false;
  /** Those of the channel whose try ended last. */
  #neighbours: Neighbours | undefined;
  #lastUsedUs: number;

  /** @param disposed - called when the last channel has let go */
  constructor(settings: EndpointSettings, disposed: () => void) {
    this.settings = settings;
    this.origin = settings.url.origin;
    this.#disposed = disposed;
    this.#lastUsedUs = settings.clock.nowUs();
    this.#breaker = createBreaker(settings.breaker, {
      random: settings.random,
      isolationEndsBy: settings.healthCheck === undefined ? 'time' : 'caller',
      mayOpen: () => this.#neighbours?.mayOpen(this) ?? true,
      cluster: {
        join: () => (nowUs, commonFaultUs) =>
          this.#neighbours?.wellRatio(this, nowUs, commonFaultUs) ?? Number.NaN,
      },
      onChange: (change) => this.#changed(change),
    });
  }

  /** A channel begins to use it. */
  hold(registry: Registry | undefined, onEvent: OnEvent | undefined): symbol {
    const holder = Symbol(this.settings.key);
    this.#holders.set(holder, onEvent);
    if (registry !== undefined) {
      this.#registries.add(registry);
      registry.add(this);
    }
    return holder;
  }

  /** A channel lets go. With the last one the health check ends and idle connections close; calls in flight finish. */
  release(holder: symbol): void {
    if (!this.#holders.delete(holder) || this.#holders.size > 0) return;
    this.#isDisposed = true;
    this.#stopChecking();
    for (const agent of this.#agents.values()) retire(agent);
    for (const connections of this.#connections.values()) connections.retire();
    for (const registry of this.#registries) registry.remove(this);
    this.#disposed();
  }

  get holders(): number {
    return this.#holders.size;
  }

  get inflight(): number {
    return this.#inflight;
  }

  get lastUsedUs(): number {
    return this.#lastUsedUs;
  }

  /** For balancers: see `Candidate`. */
  get loadLatencyUs(): number {
    return this.#loadLatency.read(this.settings.clock.nowUs());
  }

  state(nowUs: number): BreakerState {
    return this.#breaker.state(nowUs);
  }

  rampRatio(nowUs: number): number {
    return this.#breaker.rampRatio(nowUs);
  }

  isolationLeftUs(nowUs: number): number {
    return this.#breaker.isolationLeftUs(nowUs);
  }

  failingForUs(nowUs: number): number {
    return this.#breaker.failingForUs(nowUs);
  }

  /** Time for which it wants to be the last choice. */
  deferredUs(nowUs: number): number {
    return Math.max(0, this.#deferredUntilUs - nowUs);
  }

  /** The breaker's leave for one try, or `NO_TOKEN`. */
  tryCall(nowUs: number): number {
    return this.#breaker.tryCall(nowUs);
  }

  /** The agent whose connections have this time limit. */
  agent(connectTimeoutMs: number): http.Agent {
    let agent = this.#agents.get(connectTimeoutMs);
    if (agent === undefined) {
      agent = createAgent(this.settings.url.protocol, {
        connectTimeoutMs,
        tls: this.settings.tls,
        connected: () => {
          this.#connectTimeouts = 0;
        },
      });
      this.#agents.set(connectTimeoutMs, agent);
    }
    return agent;
  }

  /** Connections of a kind of its own; those of an endpoint that has ended are not kept. */
  connections<T extends Connections>(kind: symbol, create: (connected: () => void) => T): T {
    let connections = this.#connections.get(kind);
    if (connections === undefined) {
      connections = create(() => {
        this.#connectTimeouts = 0;
      });
      this.#connections.set(kind, connections);
    }
    return connections as T;
  }

  begin(): void {
    this.#inflight += 1;
    this.#calls += 1;
    this.#lastUsedUs = this.settings.clock.nowUs();
  }

  end(ended: EndedTry): void {
    const nowUs = this.settings.clock.nowUs();
    const { verdict, latencyUs, token, errorCost } = ended;
    this.#inflight -= 1;
    this.#lastUsedUs = nowUs;
    this.#costIsFed ||= errorCost;
    this.#count(ended, nowUs);
    const isolateBy = this.#connectionCause(verdict);
    if (isolateBy !== undefined) {
      this.#breaker.isolate(nowUs, isolateBy);
      return;
    }
    this.#neighbours = ended.neighbours;
    this.#breaker.record(this.#outcomeFor(ended), latencyUs, nowUs, token);
  }

  /**
   * An answer that was good so far broke off in its body.
   *
   * @param token - the try's, or `NO_TOKEN` where error cost is off
   */
  brokeOff(token: number, neighbours: Neighbours): void {
    const nowUs = this.settings.clock.nowUs();
    this.#failures += 1;
    this.#recentErrors += 1;
    // a trial call has had its verdict
    if (token === NO_TOKEN || this.#breaker.isTrial(token)) return;
    this.#neighbours = neighbours;
    this.#breaker.record('failure', 0, nowUs, token);
  }

  /** Tells all channels that share it, once for each code. */
  warnOnce(code: string, message: string): void {
    if (this.#warned.has(code)) return;
    this.#warned.add(code);
    this.#tell({ type: 'warning', code, name: this.settings.key, message });
  }

  snapshot(weight: number = this.settings.weight): EndpointSnapshot {
    const nowUs = this.settings.clock.nowUs();
    const state = this.#breaker.state(nowUs);
    return {
      type: 'endpoint',
      name: this.settings.key,
      origin: this.origin,
      connectionGroup: this.settings.connectionGroup,
      weight,
      state,
      reason: this.#reason,
      nBreak: this.#breaker.opened,
      recentErrors: this.#recentErrors,
      isolationLeftMs: this.#breaker.isolationLeftUs(nowUs) / 1000,
      rampRatio: this.#breaker.rampRatio(nowUs),
      inflight: this.#inflight,
      calls: this.#calls,
      failures: this.#failures,
      refusals: this.#refusals,
      meanLatencyUs: this.#meanLatencyUs,
    };
  }

  flags(): readonly FlagSnapshot[] {
    return this.#breaker.flags();
  }

  configure(partial: Readonly<Record<string, unknown>>): void {
    this.#breaker.configure(partial);
  }

  #count({ verdict, latencyUs, allowedUs, deferMs }: EndedTry, nowUs: number): void {
    const { outcome, refusal = false } = verdict;
    if (deferMs > 0) this.#deferredUntilUs = nowUs + deferMs * 1000;
    if (refusal) {
      this.#refusals += 1; // fast because it did nothing: no latency, and nobody's error
    } else if (outcome === 'failure') {
      this.#failures += 1;
      this.#recentErrors += 1;
      this.#loadLatency.failed(latencyUs, allowedUs, nowUs);
    } else if (outcome === 'success') {
      this.#answers += 1;
      const weight = 1 / Math.min(this.#answers, MEAN_OVER);
      this.#meanLatencyUs += weight * (latencyUs - this.#meanLatencyUs);
      this.#loadLatency.answered(latencyUs, nowUs);
    }
  }

  /** The always-on policy: what takes an endpoint out at once, whatever its error cost. */
  #connectionCause({ connect, outcome, status }: Verdict): string | undefined {
    if (connect === undefined) {
      if (outcome === 'success' || status !== undefined) this.#connectTimeouts = 0;
      return undefined;
    }
    if (connect !== 'timeout') return connect;
    this.#connectTimeouts += 1;
    if (this.#connectTimeouts < this.settings.connectTimeoutsAsUnreachable) return undefined;
    this.#connectTimeouts = 0;
    return 'connectTimeout';
  }

  /** What the breaker learns. Trial calls count for every channel, else half-open would never end. */
  #outcomeFor({ verdict, token, errorCost }: EndedTry): Outcome {
    const { outcome, connect } = verdict;
    if (errorCost) return outcome;
    if (token === NO_TOKEN || !this.#breaker.isTrial(token)) return 'ignored';
    // an error answer is no reason to stay out where error cost is off
    return outcome === 'failure' && connect === undefined && !this.#costIsFed ? 'success' : outcome;
  }

  #changed({ state, cause, isolationUs, nowUs }: BreakerChange): void {
    this.#stopChecking();
    if (state === 'open') {
      this.#reason = SNAPSHOT_CAUSES[cause] ?? cause;
      for (const agent of this.#agents.values()) dropIdle(agent);
      for (const connections of this.#connections.values()) connections.dropIdle();
      this.#checkAt(nowUs + isolationUs);
    } else if (state === 'closed') {
      this.#recentErrors = 0;
      this.#connectTimeouts = 0;
    }
    this.#tell({
      type: state === 'closed' ? 'close' : state,
      name: this.settings.key,
      cause,
      isolationMs: isolationUs / 1000,
    });
  }

  /** The first check comes when the isolation is over, so that its least length is kept. */
  #checkAt(atUs: number): void {
    const { healthCheck, clock, timers } = this.settings;
    if (healthCheck === undefined || this.#isDisposed || atUs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.max(0, Math.ceil((atUs - clock.nowUs()) / 1000));
    this.#isolationTimer = timers.setTimeout(() => this.#check(healthCheck), delayMs);
  }

  #check({ intervalMs, timeoutMs, path, probe }: HealthCheck): void {
    const { clock, timers, url, host, tls } = this.settings;
    this.#stopHealthCheck = startHealthCheck({
      intervalMs,
      timeoutMs,
      timers,
      probe: (signal) => probe({ url, host, path, tls }, signal),
      passed: () => this.#breaker.halfOpen(clock.nowUs(), 'healthCheck'),
    });
  }

  #stopChecking(): void {
    this.settings.timers.clearTimeout(this.#isolationTimer);
    this.#stopHealthCheck?.();
    this.#stopHealthCheck = undefined;
  }

  #tell(event: ElimitEvent): void {
    for (const onEvent of new Set(this.#holders.values())) {
      if (onEvent !== undefined) tell(onEvent, event);
    }
  }
}
