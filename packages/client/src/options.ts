import {
  type BreakerOptions,
  booleanOf,
  type Clock,
  createBreaker,
  functionOf,
  having,
  integerIn,
  knownKeys,
  numberIn,
  type OnEvent,
  objectOf,
  processRegistry,
  type Random,
  type Registry,
  renamed,
  show,
  systemClock,
  systemRandom,
  type Timers,
  textOf,
} from '@elimit/core';
import type { TlsOptions } from './agent.js';
import type { BalancerValue } from './balancer/create.js';
import type { HealthCheck } from './endpoint.js';
import { type Probe, probeBySocket } from './health-check.js';
import { listNaming } from './naming/list.js';
import type { Naming, NodeValue } from './naming/naming.js';
import { patientTimers } from './patient-timers.js';
import {
  RETRY_BUDGET_DEFAULTS,
  type RetryBudgetOptions,
  resolveRetryBudgetOptions,
} from './retry-budget.js';
import { type Classify, classifyByDefault } from './verdict.js';

/** How isolated endpoints are asked whether they are back. */
export interface HealthCheckOptions {
  /** Time from one check to the next, in milliseconds, 10 to 3 600 000. @default 3000 */
  readonly intervalMs?: number | undefined;
  /** How long one check may take, in milliseconds, 1 to 3 600 000; never longer than the interval. @default 500 */
  readonly timeoutMs?: number | undefined;
  /** A path that must answer 2xx to a GET. @default none: a TCP connection is enough */
  readonly path?: string | undefined;
  /** A check of one's own, instead of the built-in one. */
  readonly probe?: Probe | undefined;
}

/** Everything about a channel; `undefined` stands for the default. */
export interface ChannelOptions {
  /** For messages and events, and the host by which URLs of undici's reach the nodes; give one to each of several. @default 'channel' */
  readonly name?: string | undefined;
  /** The nodes, as a list: origins, or `{ url, weight, host }`. Give this, `naming` or `unlisted`. */
  readonly nodes?: readonly NodeValue[] | undefined;
  /** Finds the nodes: `fileNaming(path)`, `dnsNaming(origin)`, or one's own. */
  readonly naming?: Naming | undefined;
  /** True for a channel without nodes: each call names its own `origin`, and is guarded by it. @default false */
  readonly unlisted?: boolean | undefined;
  /** Who is next: `roundRobin`, `random`, `weighted`, `leastLoaded`, or one's own. @default 'roundRobin' */
  readonly balancer?: BalancerValue | undefined;

  /** Time for a call, all tries included, in milliseconds, 1 to 86 400 000; more than `connectTimeoutMs`. @default 500 */
  readonly timeoutMs?: number | undefined;
  /** Time for one try, in milliseconds, more than `connectTimeoutMs`, at most `timeoutMs`. @default what is left of the call's */
  readonly tryTimeoutMs?: number | undefined;
  /** Time for a TCP connection, in milliseconds, 1 to 3 600 000. TLS and look-ups are not part of it. @default 200 */
  readonly connectTimeoutMs?: number | undefined;
  /** Whether the time left goes out with each try, and in which header. @default true: `x-request-timeout-ms` */
  readonly deliverTimeout?: boolean | string | undefined;

  /** Tries after the first, backup included, 0 to 100. @default 3 */
  readonly maxRetries?: number | undefined;
  /** Statuses that another try may better, 500 to 599. Refusals marked ELIMIT always may. @default [503] */
  readonly retryStatuses?: readonly number[] | undefined;
  /** The longest `Retry-After` that is believed, in milliseconds, 0 to 3 600 000. @default 10000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** What second tries may cost; false for no bound but `maxRetries`. */
  readonly retryBudget?: RetryBudgetOptions | false | undefined;
  /** A second try if there is no answer by then, in milliseconds, less than `timeoutMs`. @default off */
  readonly backupRequestMs?: number | undefined;
  /** What backup requests may cost, apart from retries. */
  readonly backupBudget?: RetryBudgetOptions | false | undefined;

  /** Connect timeouts in a row that isolate like an unreachable network, 1 to 1000. @default 3 */
  readonly connectTimeoutsAsUnreachable?: number | undefined;
  /** Isolation by error cost: `true` for every call, `false` for none. @default as each call asks: off for raw calls, on for those of adapters */
  readonly errorCost?: boolean | undefined;
  /** Numbers of the error-cost breaker and of isolation. */
  readonly breaker?: BreakerOptions | undefined;
  /** Largest share of a channel's endpoints that error cost may isolate, 0 to 1. Holds from two endpoints on. @default 0.5 */
  readonly maxIsolatedRatio?: number | undefined;
  /** How isolated endpoints come back; `false` for by time and real calls alone. */
  readonly healthCheck?: HealthCheckOptions | false | undefined;
  /** After none was usable: traffic passes in the share usable ÷ this, 1 to 1 000 000. Needs `holdMs`. @default off */
  readonly minWorkingInstances?: number | undefined;
  /** Recovery ends when the number of usable endpoints has stood still so long, in milliseconds, 1 to 86 400 000. Needs `minWorkingInstances`. */
  readonly holdMs?: number | undefined;

  /** Endpoints, and so breakers and connections, are shared by channels of one group; trimmed, case counts. @default '' */
  readonly connectionGroup?: string | undefined;
  /** Certificates and rules for https nodes, as `tls.connect` takes them; for every origin where there are no nodes. */
  readonly tls?: TlsOptions | undefined;
  /** Origins that are not listed: how many are remembered, 1 to 100 000. @default 1000 */
  readonly maxUnlisted?: number | undefined;
  /** Origins that are not listed are forgotten when unused so long, in milliseconds, 1000 to 86 400 000. @default 300000 */
  readonly unlistedIdleMs?: number | undefined;
  /** Gives a verdict on each try. @default by error codes and statuses */
  readonly classify?: Classify | undefined;

  /** Told of isolations and returns, of recovery, and of warnings. @default nobody is */
  readonly onEvent?: OnEvent | undefined;
  /** Tells the time. @default the system's, monotonic */
  readonly clock?: Clock | undefined;
  /** Wakes the channel later. @default the system's, which keep no process alive and look at the sockets once more before they fire */
  readonly timers?: Timers | undefined;
  /** Chance from 0 up to 1: for balancers and the jitter of isolations. @default `Math.random` */
  readonly random?: Random | undefined;
  /** Where pages and collectors find the endpoints; false for nowhere. @default the one of the process */
  readonly registry?: Registry | false | undefined;
}

const HEALTH_CHECK_DEFAULTS = {
  intervalMs: 3000,
  timeoutMs: 500,
  path: undefined,
  probe: probeBySocket,
} as const satisfies HealthCheckOptions;

/** The header in which the time left goes out: whole milliseconds, from now. */
export const TIMEOUT_HEADER = 'x-request-timeout-ms';

/** What a channel does unless told otherwise. */
export const CHANNEL_DEFAULTS = {
  name: 'channel',
  nodes: undefined,
  naming: undefined,
  unlisted: false,
  balancer: 'roundRobin',
  timeoutMs: 500,
  tryTimeoutMs: undefined,
  connectTimeoutMs: 200,
  deliverTimeout: true,
  maxRetries: 3,
  retryStatuses: [503],
  maxRetryAfterMs: 10_000,
  retryBudget: RETRY_BUDGET_DEFAULTS,
  backupRequestMs: undefined,
  backupBudget: RETRY_BUDGET_DEFAULTS,
  connectTimeoutsAsUnreachable: 3,
  errorCost: undefined,
  breaker: {},
  maxIsolatedRatio: 0.5,
  healthCheck: HEALTH_CHECK_DEFAULTS,
  minWorkingInstances: undefined,
  holdMs: undefined,
  connectionGroup: '',
  tls: {},
  maxUnlisted: 1000,
  unlistedIdleMs: 300_000,
  classify: classifyByDefault,
  onEvent: undefined,
  clock: systemClock,
  timers: patientTimers,
  random: systemRandom,
  registry: undefined,
} as const satisfies ChannelOptions;

const DAY_MS = 86_400_000;

/** A channel's options, checked, none absent that has a default. */
export type ResolvedChannelOptions = ReturnType<typeof resolveChannelOptions>;

/** Throws on unknown keys, bad values, and values that do not go together. */
export function resolveChannelOptions(options: ChannelOptions) {
  knownKeys('channel', options, CHANNEL_DEFAULTS);
  const given = { ...CHANNEL_DEFAULTS, ...definedOf(options) } as WithDefaults;
  return {
    name: textOf('channel.name', given.name),
    naming: resolveNaming(given),
    balancer: given.balancer,
    ...resolveTimes(given),
    timeoutHeader: resolveTimeoutHeader(given.deliverTimeout),
    maxRetries: integerIn('channel.maxRetries', given.maxRetries, 0, 100),
    retryStatuses: resolveRetryStatuses(given.retryStatuses),
    maxRetryAfterMs: integerIn('channel.maxRetryAfterMs', given.maxRetryAfterMs, 0, 3_600_000),
    retryBudget: resolveBudget('channel.retryBudget', given.retryBudget),
    backupBudget: resolveBudget('channel.backupBudget', given.backupBudget),
    connectTimeoutsAsUnreachable: integerIn(
      'channel.connectTimeoutsAsUnreachable',
      given.connectTimeoutsAsUnreachable,
      1,
      1000,
    ),
    errorCost: optional(given.errorCost, (value) => booleanOf('channel.errorCost', value)),
    breaker: resolveBreaker(given.breaker),
    maxIsolatedRatio: numberIn('channel.maxIsolatedRatio', given.maxIsolatedRatio, 0, 1),
    healthCheck: resolveHealthCheck(given.healthCheck),
    recovery: resolveRecovery(given),
    connectionGroup: resolveGroup(given.connectionGroup),
    tls: objectOf('channel.tls', given.tls),
    maxUnlisted: integerIn('channel.maxUnlisted', given.maxUnlisted, 1, 100_000),
    unlistedIdleMs: integerIn('channel.unlistedIdleMs', given.unlistedIdleMs, 1000, DAY_MS),
    classify: functionOf('channel.classify', given.classify),
    onEvent: optional(given.onEvent, (value) => functionOf('channel.onEvent', value)),
    clock: having('channel.clock', given.clock, ['nowUs']),
    timers: having('channel.timers', given.timers, ['setTimeout', 'clearTimeout']),
    random: functionOf('channel.random', given.random),
    registry: resolveRegistry(given.registry),
  };
}

type WithDefaults = Omit<ChannelOptions, keyof typeof CHANNEL_DEFAULTS> & {
  readonly [K in keyof typeof CHANNEL_DEFAULTS]-?: undefined extends (typeof CHANNEL_DEFAULTS)[K]
    ? ChannelOptions[K]
    : Exclude<ChannelOptions[K], undefined>;
};

function definedOf(options: ChannelOptions): ChannelOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function optional<T>(value: T | undefined, check: (value: T) => T): T | undefined {
  return value === undefined ? undefined : check(value);
}

function resolveNaming({ nodes, naming, unlisted }: WithDefaults): Naming | undefined {
  booleanOf('channel.unlisted', unlisted);
  const ways = Number(nodes !== undefined) + Number(naming !== undefined) + Number(unlisted);
  if (ways !== 1) {
    throw new TypeError(
      `channel needs one of nodes, naming, or unlisted: true; got ${ways === 0 ? 'none' : 'more than one'}`,
    );
  }
  if (nodes !== undefined) return listNaming(nodes);
  return naming === undefined ? naming : having('channel.naming', naming, ['watch']);
}

function resolveTimes({
  timeoutMs,
  tryTimeoutMs,
  connectTimeoutMs,
  backupRequestMs,
}: WithDefaults) {
  integerIn('channel.timeoutMs', timeoutMs, 1, DAY_MS);
  integerIn('channel.connectTimeoutMs', connectTimeoutMs, 1, 3_600_000);
  if (timeoutMs <= connectTimeoutMs) {
    throw new RangeError(
      `channel.timeoutMs (${timeoutMs}) must be more than channel.connectTimeoutMs (${connectTimeoutMs}), ` +
        'or a host that is down could not be told from one that is slow',
    );
  }
  if (tryTimeoutMs !== undefined) {
    const within = 'channel.tryTimeoutMs (more than connectTimeoutMs, at most timeoutMs)';
    integerIn(within, tryTimeoutMs, connectTimeoutMs + 1, timeoutMs);
  }
  if (backupRequestMs !== undefined) {
    integerIn('channel.backupRequestMs', backupRequestMs, 1, timeoutMs - 1);
  }
  return { timeoutMs, tryTimeoutMs, connectTimeoutMs, backupRequestMs };
}

function resolveTimeoutHeader(value: boolean | string): string | undefined {
  if (typeof value === 'boolean') return value ? TIMEOUT_HEADER : undefined;
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(textOf('channel.deliverTimeout', value))) {
    throw new RangeError(`channel.deliverTimeout must be a header name, got ${show(value)}`);
  }
  return value.toLowerCase();
}

function resolveRetryStatuses(values: readonly number[]): ReadonlySet<number> {
  if (!Array.isArray(values)) {
    throw new TypeError(`channel.retryStatuses must be an array, got ${show(values)}`);
  }
  return new Set(
    values.map((value: number, i) => integerIn(`channel.retryStatuses[${i}]`, value, 500, 599)),
  );
}

function resolveBudget(of: string, value: RetryBudgetOptions | false) {
  return value === false ? undefined : resolveRetryBudgetOptions(of, value);
}

/** Made once and thrown away, so that bad numbers are found here and not at the first call. */
function resolveBreaker(options: BreakerOptions): BreakerOptions {
  renamed('breaker', 'channel.breaker', () => createBreaker(objectOf('breaker', options)));
  return options;
}

function resolveRegistry(value: Registry | false | undefined): Registry | undefined {
  if (value === false) return undefined;
  return having('channel.registry', value ?? processRegistry(), ['add', 'remove', 'sources']);
}

function resolveHealthCheck(value: HealthCheckOptions | false): HealthCheck | undefined {
  if (value === false) return undefined;
  const of = 'channel.healthCheck';
  const defaults = HEALTH_CHECK_DEFAULTS;
  knownKeys(of, value, defaults);
  const { path } = value;
  if (path !== undefined && !/^\/[^\s#]*$/.test(textOf(`${of}.path`, path))) {
    throw new RangeError(`${of}.path must be a path like "/healthz", got ${show(path)}`);
  }
  return {
    intervalMs: integerIn(
      `${of}.intervalMs`,
      value.intervalMs ?? defaults.intervalMs,
      10,
      3_600_000,
    ),
    timeoutMs: integerIn(`${of}.timeoutMs`, value.timeoutMs ?? defaults.timeoutMs, 1, 3_600_000),
    path,
    probe: functionOf(`${of}.probe`, value.probe ?? defaults.probe),
  };
}

function resolveRecovery({ minWorkingInstances, holdMs }: WithDefaults) {
  if (minWorkingInstances === undefined && holdMs === undefined) return undefined;
  if (minWorkingInstances === undefined || holdMs === undefined) {
    throw new TypeError('channel.minWorkingInstances and channel.holdMs go together: give both');
  }
  return {
    minWorkingInstances: integerIn('channel.minWorkingInstances', minWorkingInstances, 1, 1e6),
    holdMs: numberIn('channel.holdMs', holdMs, 1, DAY_MS),
  };
}

function resolveGroup(value: string): string {
  if (typeof value !== 'string') {
    throw new TypeError(`channel.connectionGroup must be a string, got ${show(value)}`);
  }
  return value.trim();
}
