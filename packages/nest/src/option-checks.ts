import {
  booleanOf,
  functionOf,
  knownKeys,
  located,
  objectOf,
  parseMaxConcurrency,
  RATE_LIMITER_DEFAULTS,
  show,
  textOf,
  windowOf,
} from '@elimit/core';
import { isGuards, isReadyMade } from '@elimit/node-http';
import type {
  ElimitAsyncOptions,
  ElimitModuleOptions,
  ElimitRootOptions,
  MaxConcurrencyOptions,
  NestGuardOptions,
  NestLimitOptions,
  NestRateLimitOptions,
} from './options.js';

// Lists of names are records of types, so that the compiler finds the one that is missing.
type Keys<T> = Readonly<Record<keyof T, true>>;

/** What one call can be told apart by; a decorator may say it for its own. */
const OF_CALLS = {
  skip: true,
  priority: true,
  statusCode: true,
  message: true,
  timeoutMs: true,
  deadlineHeaders: true,
  dispatch: true,
  maxQueued: true,
  dryRun: true,
  drainHoldMs: true,
  abandonedHoldMs: true,
  maxHoldMs: true,
  maxBodies: true,
  bodyHoldMs: true,
  maxStreams: true,
  isFailure: true,
} as const;
/** What all guards of a module have in common. */
const OF_ALL_GUARDS = {
  onEvent: true,
  clock: true,
  timers: true,
  random: true,
  registry: true,
} as const;
const OF_LIMITS: Keys<NestLimitOptions> = { ...OF_CALLS, ...OF_ALL_GUARDS };

const OF_CREATE_GUARDS = {
  serverMaxConcurrency: true,
  methodMaxConcurrency: true,
  methods: true,
  maxNames: true,
  serverName: true,
} as const;
const OF_MODULE: Keys<ElimitModuleOptions> = {
  ...OF_CREATE_GUARDS,
  guards: true,
  contexts: true,
  exception: true,
  rateLimit: true,
  rateLimitGuard: true,
  ...OF_LIMITS,
};
const OF_ROOT: Keys<ElimitRootOptions> = { ...OF_MODULE, global: true };
const OF_ASYNC: Keys<ElimitAsyncOptions> = {
  imports: true,
  inject: true,
  useFactory: true,
  global: true,
};
const OF_DECORATOR: Keys<MaxConcurrencyOptions> = { name: true, shared: true, ...OF_CALLS };
const OF_BOUND: Keys<NestGuardOptions> = { name: true, exception: true, ...OF_LIMITS };

/** Options of guards: whoever made a guard has given it them. */
const GUARDS_OWN = { ...OF_CREATE_GUARDS, dryRun: true, random: true, registry: true } as const;

const OF_RATE: Keys<NestRateLimitOptions> = {
  ...(RATE_LIMITER_DEFAULTS as unknown as Keys<typeof RATE_LIMITER_DEFAULTS>),
  ttl: true,
  getTracker: true,
  generateKey: true,
  shared: true,
  limiter: true,
  ipv6Subnet: true,
  cost: true,
  skip: true,
  message: true,
  statusCode: true,
  standardHeaders: true,
  legacyHeaders: true,
  identifier: true,
  requestPropertyName: true,
  skipSuccessfulRequests: true,
  skipFailedRequests: true,
  requestWasSuccessful: true,
  validate: true,
};
/** Names that users of other adapters and packages will try. */
const RATE_RENAMED = {
  keyGenerator: 'say getTracker',
  handler: 'catch the ElimitException, or give the module an exception',
  skipIf: 'say skip',
  blockDuration: 'an empty bucket fills at its rate',
  max: 'say limit',
  points: 'say limit',
  duration: 'say ttl, in milliseconds',
  passOnStoreError: "say storePolicy: 'open'",
} as const;

/** `forRoot`'s own; the rest is checked with the module's. @throws TypeError that names the option */
export function checkRootOptions(options: ElimitRootOptions): void {
  knownKeys('elimit', options, OF_ROOT);
  if (options.global !== undefined) booleanOf('elimit.global', options.global);
}

/** @throws TypeError that names the option */
export function checkAsyncOptions(options: ElimitAsyncOptions): void {
  knownKeys('elimit', options, OF_ASYNC);
  functionOf('elimit.useFactory', options.useFactory);
  if (options.global !== undefined) booleanOf('elimit.global', options.global);
}

/**
 * All of a module's options but those that `RequestLimit`, `createGuards` and the rate limiters check.
 *
 * @throws TypeError or RangeError that names the option, what it may be, and what it was
 */
export function checkModuleOptions(options: ElimitModuleOptions): void {
  if (Object.hasOwn(objectOf('elimit', options), 'global')) {
    throw new TypeError(
      'elimit.global belongs beside useFactory: Nest reads it before it is called',
    );
  }
  knownKeys('elimit', options, OF_MODULE);
  noNulls('elimit', options);
  const { guards, contexts, exception } = options;
  if (guards !== undefined) {
    if (!isGuards(guards)) {
      throw new TypeError(`elimit.guards must be of createGuards, got ${show(guards)}`);
    }
    for (const [name, value] of Object.entries(options)) {
      if (value !== undefined && Object.hasOwn(GUARDS_OWN, name)) {
        throw new TypeError(`elimit.${name} belongs to the guards: give it to createGuards`);
      }
    }
  }
  const { serverMaxConcurrency, methodMaxConcurrency, methods = {} } = options;
  const values = Object.entries({ serverMaxConcurrency, methodMaxConcurrency });
  for (const [name, value] of Object.entries(objectOf('elimit.methods', methods))) {
    values.push([`methods['${name}']`, value]);
  }
  for (const [name, value] of values) {
    if (value !== undefined) located(`elimit.${name}`, () => parseMaxConcurrency(value));
  }
  if (contexts !== undefined) {
    if (!Array.isArray(contexts)) {
      throw new TypeError(
        `elimit.contexts must be an array of names such as 'rpc', got ${show(contexts)}`,
      );
    }
    for (const [i, one] of contexts.entries()) textOf(`elimit.contexts[${i}]`, one);
  }
  if (exception !== undefined) functionOf('elimit.exception', exception);
}

/** What is left for the `RequestLimit`s of a module: its guards have had theirs. */
export function limitOptionsOf(options: ElimitModuleOptions): NestLimitOptions {
  return picked(
    options,
    (name) => Object.hasOwn(OF_LIMITS, name) && !Object.hasOwn(GUARDS_OWN, name),
  );
}

/** What `createGuards` gets of a module. */
export function guardsOptionsOf(options: ElimitModuleOptions): object {
  return picked(
    options,
    (name) => Object.hasOwn(GUARDS_OWN, name) || Object.hasOwn(OF_ALL_GUARDS, name),
  );
}

/**
 * Of one decorator.
 *
 * @throws TypeError that names the option, and says where it belongs
 */
export function checkDecorator(target: unknown, options: MaxConcurrencyOptions): void {
  const of = 'maxConcurrency';
  for (const name of Object.keys(objectOf(of, options))) {
    if (Object.hasOwn(OF_ALL_GUARDS, name)) {
      throw new TypeError(
        `${of}.${name} belongs to all guards of the module: give it to ElimitModule, or to a guard that createGuard makes`,
      );
    }
  }
  knownKeys(of, options, OF_DECORATOR);
  noNulls(of, options);
  if (options.name !== undefined) textOf(`${of}.name`, options.name);
  if (options.shared !== undefined) booleanOf(`${of}.shared`, options.shared);
  if (isReadyMade(target)) {
    if (options.dryRun !== undefined) {
      throw new TypeError(
        `${of}.dryRun belongs to the guard: give it to createGuard or createGuards`,
      );
    }
  } else {
    parseMaxConcurrency(target as never);
    if (options.dryRun !== undefined) booleanOf(`${of}.dryRun`, options.dryRun);
  }
}

/** What a decorator says of its own calls. */
export function callOptionsOf(options: MaxConcurrencyOptions): NestLimitOptions {
  return picked(options, (name) => Object.hasOwn(OF_CALLS, name) && name !== 'dryRun');
}

/** Of `limit`. @throws TypeError that names the option */
export function checkBoundOptions(options: NestGuardOptions): void {
  knownKeys('limit', options, OF_BOUND);
  noNulls('limit', options);
  if (options.name !== undefined) textOf('limit.name', options.name);
  if (options.exception !== undefined) functionOf('limit.exception', options.exception);
}

/** Of one rate limit, but for what `RequestRateLimit` checks. @throws TypeError that names the option */
export function checkRateOptions(options: NestRateLimitOptions): void {
  const of = 'rateLimit';
  for (const name of Object.keys(objectOf(of, options))) {
    if (!Object.hasOwn(RATE_RENAMED, name)) continue;
    const known = RATE_RENAMED[name as keyof typeof RATE_RENAMED];
    throw new TypeError(`${of}.${name} is not an option: ${known}`);
  }
  knownKeys(of, options, OF_RATE);
  noNulls(of, options);
  const { name, limit, ttl, windowMs, getTracker, generateKey, shared } = options;
  if (name !== undefined) textOf(`${of}.name`, name);
  if (ttl !== undefined) {
    if (windowMs !== undefined) {
      throw new TypeError(`${of}.ttl and ${of}.windowMs are the same: give one`);
    }
    if (limit === undefined) throw new TypeError(`${of}.ttl needs ${of}.limit`);
    windowOf(`${of}.ttl`, ttl);
  }
  if (getTracker !== undefined) functionOf(`${of}.getTracker`, getTracker);
  if (generateKey !== undefined) functionOf(`${of}.generateKey`, generateKey);
  if (shared !== undefined) booleanOf(`${of}.shared`, shared);
}

/** Without what is `undefined`: that means absent, and must not hide what it is laid over. */
export function picked<T extends object>(options: T, isWanted = (_name: string) => true): T {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => value !== undefined && isWanted(name)),
  ) as T;
}

/** `null` is no way to leave an option out: it would stand for the default, which often is no limit. */
function noNulls(of: string, options: object): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === null)
      throw new TypeError(`${of}.${name} must be left out or have a value, got null`);
  }
}
