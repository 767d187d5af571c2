import {
  type ClusterRecovery,
  createClusterRecovery,
  type EndpointSnapshot,
  functionOf,
  NO_TOKEN,
  tell,
  wellRatio,
  withoutStack,
} from '@elimit/core';
import type { TryFn } from './attempt.js';
import type { Balancer, Candidate } from './balancer/balancer.js';
import { createBalancer } from './balancer/create.js';
import { Call, type CallHost, type CallOptions, type Picked, type PickRules } from './call.js';
import { callOptionsCheck } from './call-options.js';
import type { Endpoint } from './endpoint.js';
import { endpointKey, poolOf } from './endpoint-pool.js';
import { ChannelClosedError, NoEndpointError, RecoveringError } from './errors.js';
import { type NodeEntry, type NodeValue, resolveNodes } from './naming/naming.js';
import {
  type ChannelOptions,
  type ResolvedChannelOptions,
  resolveChannelOptions,
} from './options.js';
import { RetryBudget } from './retry-budget.js';

/** Calls to a service on several nodes. */
export interface Channel {
  readonly name: string;
  /** False for a channel made with `unlisted`: each of its calls needs an `origin`. */
  readonly hasNodes: boolean;
  /** Of a call without a time of its own, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Makes one call: chooses an endpoint, runs `tryFn` on it, and tries again where that makes sense and can
   * do no harm. Rejects with what the last try was rejected with, or with `TimeoutError`, `NoEndpointError`,
   * `RecoveringError`, `ChannelClosedError`, or the signal's reason.
   */
  execute<T>(tryFn: TryFn<T>, options?: CallOptions<T>): Promise<T>;
  /** The listed endpoints in their order, then the unlisted ones in use. */
  endpoints(): EndpointSnapshot[];
  /** Ends calls in flight with `ChannelClosedError`, and all timers and idle connections. Once; later calls do nothing. */
  close(): void;
  readonly isClosed: boolean;
}

/** A channel; make one per service, and keep it. Throws on unknown options and bad values. */
export function createChannel(options: ChannelOptions): Channel {
  return new NodeChannel(resolveChannelOptions(options));
}

/** A listed node: an endpoint with the weight that this channel gives it. */
class Node implements Candidate {
  constructor(
    readonly endpoint: Endpoint,
    readonly holder: symbol,
    public weight: number,
  ) {}

  get origin(): string {
    return this.endpoint.origin;
  }

  get inflight(): number {
    return this.endpoint.inflight;
  }

  get loadLatencyUs(): number {
    return this.endpoint.loadLatencyUs;
  }
}

/** Forgives rounding: 0.29 × 100 is 28.999999999999996. */
const ROUNDING = 1e-9;

const checkCall = callOptionsCheck('call');

class NodeChannel implements Channel, CallHost {
  // set once
  readonly options: ResolvedChannelOptions;
  readonly retryBudget: RetryBudget | undefined;
  readonly backupBudget: RetryBudget | undefined;
  readonly #balancer: Balancer;
  readonly #recovery: ClusterRecovery | undefined;
  readonly #stopNaming: () => void;
  // moves with naming
  #nodes: Node[] = [];
  #areNodesKnown: boolean;
  #namingError: unknown;
  #isNamingBad = false;
  // moves with calls
  /** By origin, the one used longest ago first. */
  readonly #unlisted = new Map<string, Node>();
  readonly #calls = new Map<object, (reason: Error) => void>();
  readonly #waiting = new Map<object, () => void>();
  #isRecovering = false;
  #isClosed = false;

  constructor(options: ResolvedChannelOptions) {
    this.options = options;
    const { retryBudget, backupBudget, recovery, naming, clock, random } = options;
    this.#balancer = createBalancer('channel.balancer', options.balancer, random);
    this.retryBudget = retryBudget && new RetryBudget(retryBudget, clock);
    this.backupBudget = backupBudget && new RetryBudget(backupBudget, clock);
    this.#recovery = recovery && createClusterRecovery(recovery, random);
    this.#areNodesKnown = naming === undefined;
    this.#stopNaming =
      naming?.watch(
        {
          update: (nodes) => this.#namingUpdated(nodes),
          failed: (error) => this.#namingFailed(error),
        },
        options.timers,
      ) ?? (() => {});
  }

  get name(): string {
    return this.options.name;
  }

  get hasNodes(): boolean {
    return this.options.naming !== undefined;
  }

  get timeoutMs(): number {
    return this.options.timeoutMs;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  execute<T>(tryFn: TryFn<T>, options: CallOptions<T> = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      functionOf('tryFn', tryFn);
      checkCall(options);
      if (this.#isClosed) throw new ChannelClosedError(this.name);
      new Call(this, tryFn, options, resolve, reject).start();
    });
  }

  endpoints(): EndpointSnapshot[] {
    return [...this.#nodes, ...this.#unlisted.values()].map(({ endpoint, weight }) =>
      endpoint.snapshot(weight),
    );
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopNaming();
    const reason = new ChannelClosedError(this.name);
    for (const cancel of this.#calls.values()) cancel(reason);
    for (const { endpoint, holder } of [...this.#nodes, ...this.#unlisted.values()]) {
      endpoint.release(holder);
    }
    this.#nodes = [];
    this.#unlisted.clear();
  }

  started(call: object, cancel: (reason: Error) => void): void {
    this.#calls.set(call, cancel);
  }

  finished(call: object): void {
    this.#calls.delete(call);
    this.#waiting.delete(call);
  }

  whenReady(call: object, ready: () => void): void {
    if (this.#areNodesKnown) ready();
    else this.#waiting.set(call, ready);
  }

  isTrusted(endpoint: Endpoint): boolean {
    return this.#nodes.some((node) => node.endpoint === endpoint);
  }

  usable(origin: string | undefined, nowUs: number): Endpoint[] {
    return this.#candidates(origin)
      .map(({ endpoint }) => endpoint)
      .filter((endpoint) => endpoint.state(nowUs) !== 'open');
  }

  wellRatio(endpoint: Endpoint, nowUs: number, commonFaultUs: number): number {
    if (!this.isTrusted(endpoint)) return Number.NaN; // an origin that is not in the list has no fellows
    const nodes = this.#nodes.map((node) => node.endpoint);
    return wellRatio(nodes, endpoint, nowUs, commonFaultUs);
  }

  mayOpen(endpoint: Endpoint): boolean {
    const total = this.#nodes.length;
    if (total < 2 || !this.isTrusted(endpoint)) return true;
    const nowUs = this.options.clock.nowUs();
    let out = 1; // this one
    for (const node of this.#nodes) {
      if (node.endpoint !== endpoint && node.endpoint.state(nowUs) !== 'closed') out += 1;
    }
    return out <= this.options.maxIsolatedRatio * total + ROUNDING;
  }

  pick({ tried, freshOnly, askBreaker, origin }: PickRules): Picked | Error {
    const nowUs = this.options.clock.nowUs();
    const candidates = this.#candidates(origin);
    if (origin === undefined && !this.#recoveryAdmits(nowUs)) {
      const usable = this.#countUsable(nowUs);
      return withoutStack(() => new RecoveringError(this.name, usable));
    }
    if (!askBreaker) return this.#pickUnasked(candidates, tried);
    const picked = this.#pickByRank(candidates, tried, freshOnly, nowUs);
    if (picked !== undefined) return picked;
    if (origin === undefined && !freshOnly) this.#nobodyUsable(nowUs);
    return this.noEndpoint(candidates, origin);
  }

  noEndpoint(candidates: readonly Node[] = [], origin?: string): NoEndpointError {
    const nowUs = this.options.clock.nowUs();
    const leftUs = candidates.map(({ endpoint }) => endpoint.isolationLeftUs(nowUs));
    const retryAfterMs = leftUs.length === 0 ? 0 : Math.ceil(Math.min(...leftUs) / 1000);
    return withoutStack(
      () =>
        new NoEndpointError(this.name, candidates.length, retryAfterMs, this.#namingError, origin),
    );
  }

  /**
   * The best rank that has somebody: not yet tried; then those that asked to be left alone; then those
   * that still ramp up and have had their share; then those tried before, the last one last.
   */
  #pickByRank(
    candidates: readonly Node[],
    tried: readonly Endpoint[],
    freshOnly: boolean,
    nowUs: number,
  ): Picked | undefined {
    const last = tried.at(-1);
    const fresh: Node[] = [];
    const deferred: Node[] = [];
    const before: Node[] = [];
    for (const node of candidates) {
      const { endpoint } = node;
      if (endpoint.state(nowUs) === 'open' || endpoint === last) continue;
      if (tried.includes(endpoint)) before.push(node);
      else if (endpoint.deferredUs(nowUs) > 0) deferred.push(node);
      else fresh.push(node);
    }
    const picked =
      this.#pickFrom(fresh, nowUs) ??
      this.#pickFrom(deferred, nowUs) ??
      this.#pickRamping([...fresh, ...deferred], nowUs);
    if (picked !== undefined || freshOnly) return picked;
    const lastNode = candidates.filter(
      ({ endpoint }) => endpoint === last && endpoint.state(nowUs) !== 'open',
    );
    return (
      this.#pickFrom(before, nowUs) ??
      this.#pickFrom(lastNode, nowUs) ??
      this.#pickRamping([...before, ...lastNode], nowUs)
    );
  }

  /** One that its breaker lets through. */
  #pickFrom(nodes: readonly Node[], nowUs: number): Picked | undefined {
    let left = nodes;
    while (left.length > 0) {
      const node = this.#choose(left);
      const token = node.endpoint.tryCall(nowUs);
      if (token !== NO_TOKEN) return { endpoint: node.endpoint, token };
      left = left.filter((other) => other !== node);
    }
    return undefined;
  }

  /** A ramp only steers traffic to others: where there is nobody else, the call goes through. */
  #pickRamping(nodes: readonly Node[], nowUs: number): Picked | undefined {
    const ramping = nodes.filter(({ endpoint }) => endpoint.state(nowUs) === 'closed');
    if (ramping.length === 0) return undefined;
    return { endpoint: this.#choose(ramping).endpoint, token: NO_TOKEN };
  }

  #pickUnasked(candidates: readonly Node[], tried: readonly Endpoint[]): Picked | Error {
    if (candidates.length === 0) return this.noEndpoint(candidates);
    const fresh = candidates.filter(({ endpoint }) => !tried.includes(endpoint));
    const node = this.#choose(fresh.length > 0 ? fresh : candidates);
    return { endpoint: node.endpoint, token: NO_TOKEN };
  }

  #choose(nodes: readonly Node[]): Node {
    const picked = this.#balancer.pick(nodes) as Node;
    if (!nodes.includes(picked)) {
      throw new TypeError('channel.balancer.pick must return one of its candidates');
    }
    return picked;
  }

  #candidates(origin: string | undefined): readonly Node[] {
    if (origin === undefined) return this.#nodes;
    const listed = this.#nodes.filter((node) => node.origin === origin);
    return listed.length > 0 ? listed : [this.#unlistedNode(origin)];
  }

  /** The endpoint of an origin that is not in the list: kept while used, the oldest forgotten first. */
  #unlistedNode(origin: string): Node {
    const known = this.#unlisted.get(origin);
    if (known !== undefined) {
      this.#unlisted.delete(origin); // comes last again
      this.#unlisted.set(origin, known);
      return known;
    }
    this.#forgetUnlisted();
    const url = new URL(origin);
    const node = this.#createNode({ url, weight: 1, host: undefined }, false);
    this.#unlisted.set(origin, node);
    return node;
  }

  #forgetUnlisted(): void {
    const { clock, maxUnlisted, unlistedIdleMs } = this.options;
    const idleSinceUs = clock.nowUs() - unlistedIdleMs * 1000;
    for (const [origin, { endpoint, holder }] of this.#unlisted) {
      const isOld = endpoint.lastUsedUs < idleSinceUs;
      if (!isOld && this.#unlisted.size < maxUnlisted) return;
      if (endpoint.inflight > 0 && isOld) continue;
      this.#unlisted.delete(origin);
      endpoint.release(holder);
    }
  }

  #createNode(entry: NodeEntry, isListed: boolean): Node {
    const { options } = this;
    const { connectionGroup, clock, timers, random, registry, onEvent } = options;
    const { url, host, weight } = entry;
    const healthCheck = isListed ? options.healthCheck : undefined;
    const servername =
      host === undefined ? {} : { servername: new URL(`https://${host}`).hostname };
    // what is agreed with the nodes is nobody else's business
    const isAgreed = isListed || !this.hasNodes;
    const tls = url.protocol === 'https:' && isAgreed ? { ...servername, ...options.tls } : {};
    const key = endpointKey({ url, host, tls, healthCheck, connectionGroup });
    const endpoint = poolOf(clock).get({
      key,
      url,
      host,
      weight,
      connectionGroup,
      tls,
      breaker: options.breaker,
      connectTimeoutsAsUnreachable: options.connectTimeoutsAsUnreachable,
      healthCheck,
      clock,
      timers,
      random,
    });
    return new Node(endpoint, endpoint.hold(registry, onEvent), weight);
  }

  #namingUpdated(values: readonly NodeValue[]): void {
    if (this.#isClosed) return;
    let entries: NodeEntry[];
    try {
      entries = resolveNodes(`channel ${this.name} naming`, values);
    } catch (error) {
      this.#namingFailed(error);
      return;
    }
    const leaving = new Set(this.#nodes);
    this.#nodes = entries.map((entry) => {
      const node = this.#createNode(entry, true);
      const known = this.#nodes.find(({ endpoint }) => endpoint === node.endpoint);
      if (known === undefined) return node;
      node.endpoint.release(node.holder); // held already
      known.weight = entry.weight;
      leaving.delete(known);
      return known;
    });
    for (const { endpoint, holder } of leaving) endpoint.release(holder);
    this.#isNamingBad = false;
    this.#namingError = undefined;
    this.#areNodesKnown = true;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const ready of waiting) ready();
  }

  /** The last list stands; told once for each spell of failures. */
  #namingFailed(error: unknown): void {
    this.#namingError = error;
    if (this.#isNamingBad) return;
    this.#isNamingBad = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#tell({
      type: 'warning',
      code: 'WARN_NAMING',
      name: this.name,
      message: `the nodes could not be read, the last list stands: ${reason}`,
    });
  }

  #recoveryAdmits(nowUs: number): boolean {
    const recovery = this.#recovery;
    if (recovery === undefined) return true;
    const admits = recovery.admits(() => this.#countUsable(nowUs), nowUs);
    if (this.#isRecovering && !recovery.isRecovering) {
      this.#isRecovering = false;
      this.#tellMode('recovering', 'normal', 'hold');
    }
    return admits;
  }

  #nobodyUsable(nowUs: number): void {
    const recovery = this.#recovery;
    if (recovery === undefined || this.#isRecovering) return;
    recovery.start(nowUs);
    this.#isRecovering = true;
    this.#tellMode('normal', 'recovering', 'no usable endpoint');
  }

  /** One that ramps up counts as a part of one. */
  #countUsable(nowUs: number): number {
    let usable = 0;
    for (const { endpoint } of this.#nodes) {
      if (endpoint.state(nowUs) !== 'open') usable += endpoint.rampRatio(nowUs);
    }
    return usable;
  }

  #tellMode(from: string, to: string, cause: string): void {
    this.#tell({ type: 'mode', name: this.name, from, to, cause });
  }

  #tell(event: Parameters<NonNullable<ResolvedChannelOptions['onEvent']>>[0]): void {
    const { onEvent } = this.options;
    if (onEvent !== undefined) tell(onEvent, event);
  }
}
