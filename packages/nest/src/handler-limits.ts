import 'reflect-metadata';
import { createGuards, type Guard, type Guards, parseMaxConcurrency } from '@elimit/core';
import { type LimitOptions, type LimitTarget, RequestLimit } from '@elimit/node-http';
import type { ExecutionContext, Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import type { MaxConcurrencyMetadata } from './decorators.js';
import { contextOf } from './http-context.js';
import type { ElimitModuleOptions, NestLimitOptions, NestRateLimitOptions } from './options.js';
import { MAX_CONCURRENCY, RATE_LIMIT, SKIP_LIMIT, SKIP_RATE_LIMIT } from './tokens.js';

/** A handler as Nest hands it to enhancers: a method, found through the class it is called on. */
export type Handler = (...args: never[]) => unknown;

/** The limit of one handler. */
export interface HandlerLimit {
  readonly name: string;
  readonly guard: Guard;
  /** For HTTP. */
  readonly limited: RequestLimit;
  readonly options: NestLimitOptions;
}

/** The rate limits of one handler, still options. */
export interface HandlerRate {
  /** Handlers of one controller that share a limiter have this in common. */
  readonly owner: object;
  readonly name: string;
  readonly options: NestRateLimitOptions;
}

/** Options that belong to guards: `RequestLimit` gets its guards ready-made. */
const GUARDS_OWN = {
  serverMaxConcurrency: true,
  methodMaxConcurrency: true,
  methods: true,
  maxNames: true,
  serverName: true,
  dryRun: true,
  random: true,
  registry: true,
};
/** Options that are this package's. */
const MODULES_OWN = {
  guards: true,
  contexts: true,
  exception: true,
  rateLimit: true,
  rateLimitGuard: true,
  global: true,
  shared: true,
  skip: true,
  priority: true,
  name: true,
};

/** Knows the limits of every handler: from decorators, and from the module's options. One for each application. */
export class HandlerLimits {
  // set once
  readonly options: ElimitModuleOptions;
  readonly guards: Guards;
  /** Handlers without a decorator are counted, too. */
  readonly #coversAll: boolean;
  readonly #scanner = new MetadataScanner();
  /** Classes that go by a name, in the order in which they were met. */
  readonly #classes = new Map<string, Type[]>();
  readonly #limits = new WeakMap<object, Map<Handler, HandlerLimit | undefined>>();
  readonly #methods = new WeakMap<object, Map<Handler, string>>();
  readonly #named = new Map<string, Guard>();

  /** @throws TypeError or RangeError that names the option, or the handler and what is wrong with its limit */
  constructor(options: ElimitModuleOptions = {}, modules?: ModulesContainer) {
    this.options = options;
    const { guards, serverMaxConcurrency, methodMaxConcurrency } = options;
    const given = pick(options, GUARDS_OWN);
    if (guards !== undefined) {
      const [name] = Object.keys(given);
      if (name !== undefined) {
        throw new TypeError(`elimit.${name} belongs to the guards: give it to createGuards`);
      }
    }
    this.#coversAll = [guards, serverMaxConcurrency, methodMaxConcurrency].some(
      (value) => value !== undefined,
    );
    this.guards =
      guards ??
      createGuards({
        methodMaxConcurrency: 'unlimited',
        onEvent: options.onEvent,
        clock: options.clock,
        timers: options.timers,
        ...given,
      });
    // unknown options are refused now, not with the first call
    requestLimit(this.guards, this.options, 'elimit');
    if (modules !== undefined) this.#declare(modules);
  }

  /** The limit of a handler; `undefined` if it has none. */
  limitOf(of: Type, handler: Handler): HandlerLimit | undefined {
    let byHandler = this.#limits.get(of);
    if (byHandler === undefined) {
      byHandler = new Map();
      this.#limits.set(of, byHandler);
    }
    if (byHandler.has(handler)) return byHandler.get(handler);
    const limit = this.#make(of, handler);
    byHandler.set(handler, limit);
    return limit;
  }

  /** The rate limits of a handler; the guard makes limiters of them. */
  ratesOf(of: Type, handler: Handler): readonly HandlerRate[] {
    if (isSkipped(SKIP_RATE_LIMIT, of, handler)) return [];
    const own = Reflect.getMetadata(RATE_LIMIT, handler) as Rates | undefined;
    const ofClass = Reflect.getMetadata(RATE_LIMIT, of) as Rates | undefined;
    const rates = own ?? ofClass ?? this.options.rateLimit;
    if (rates === undefined) return [];
    const level = own !== undefined ? handler : ofClass !== undefined ? of : this;
    const list = Array.isArray(rates)
      ? (rates as NestRateLimitOptions[])
      : [rates as NestRateLimitOptions];
    return list.map((options): HandlerRate => {
      const isShared = options.shared === true && level !== handler;
      const base = !isShared
        ? this.nameOf(of, handler)
        : level === of
          ? this.#classNameOf(of)
          : 'all';
      const name = options.name === undefined ? base : `${base}:${options.name}`;
      return { owner: isShared ? level : handler, name, options };
    });
  }

  /** `Orders.list`; another class `Orders` is `Orders#2`. */
  nameOf(of: Type, handler: Handler): string {
    return `${this.#classNameOf(of)}.${this.#methodNameOf(of, handler)}`;
  }

  /**
   * The guard of a handler, by its name.
   *
   * @throws Error that lists the names there are
   */
  guardNamed(name: string): Guard {
    const guard = this.#named.get(name);
    if (guard !== undefined) return guard;
    if (this.guards.names().includes(name)) return this.guards.guardOf(name);
    const names = [...this.#named.keys()].join(', ');
    throw new Error(`no handler has a guard named ${name}; there are: ${names || 'none'}`);
  }

  /** Every handler is met when the application starts, so that bad values are refused then, and all guards are seen. */
  #declare(modules: ModulesContainer): void {
    for (const { controllers, providers } of modules.values()) {
      for (const { metatype } of controllers.values()) this.#declareClass(metatype);
      for (const { metatype } of providers.values()) {
        if (isEntrance(metatype)) this.#declareClass(metatype);
      }
    }
  }

  #declareClass(of: unknown): void {
    if (typeof of !== 'function') return;
    for (const handler of handlersOf(of as Type, this.#scanner)) this.limitOf(of as Type, handler);
  }

  #make(of: Type, handler: Handler): HandlerLimit | undefined {
    if (isSkipped(SKIP_LIMIT, of, handler)) return undefined;
    const own = Reflect.getMetadata(MAX_CONCURRENCY, handler) as MaxConcurrencyMetadata | undefined;
    const ofClass = Reflect.getMetadata(MAX_CONCURRENCY, of) as MaxConcurrencyMetadata | undefined;
    const found = own ?? ofClass;
    const isShared = own === undefined && ofClass?.options.shared === true;
    const byDefault = isShared ? this.#classNameOf(of) : this.nameOf(of, handler);
    const name = found?.options.name ?? byDefault;
    if (found === undefined) {
      const isDeclared =
        this.options.methods !== undefined && Object.hasOwn(this.options.methods, name);
      if (!this.#coversAll && !isDeclared) return undefined;
    }
    try {
      return this.#limitNamed(name, found);
    } catch (error) {
      if (error instanceof Error) error.message = `@MaxConcurrency on ${name}: ${error.message}`;
      throw error;
    }
  }

  #limitNamed(name: string, found: MaxConcurrencyMetadata | undefined): HandlerLimit {
    const options = { ...this.options, ...found?.options };
    const target = found?.target;
    let guard: Guard;
    let limits: LimitTarget = this.guards;
    if (isGuard(target)) {
      guard = target;
      limits = target;
    } else if (isGuards(target)) {
      guard = target.guardOf(name);
      limits = target;
    } else {
      // what operators say in the module's options goes before what the code says
      const isDeclared =
        this.options.methods !== undefined && Object.hasOwn(this.options.methods, name);
      if (target !== undefined && !isDeclared && !this.#named.has(name)) {
        parseMaxConcurrency(target);
        this.guards.setMaxConcurrency(name, target);
      }
      guard = this.guards.guardOf(name);
      const { dryRun } = found?.options ?? {};
      if (dryRun !== undefined) guard.configure({ dryRun });
    }
    this.#named.set(name, guard);
    return { name, guard, limited: requestLimit(limits, options, name), options };
  }

  #classNameOf(of: Type): string {
    let same = this.#classes.get(of.name);
    if (same === undefined) {
      same = [];
      this.#classes.set(of.name, same);
    }
    let index = same.indexOf(of);
    if (index < 0) index = same.push(of) - 1;
    return index === 0 ? of.name : `${of.name}#${index + 1}`;
  }

  /** The method's name in its class: the function may have been wrapped by a decorator, and be called otherwise. */
  #methodNameOf(of: Type, handler: Handler): string {
    let names = this.#methods.get(of);
    if (names === undefined) {
      names = new Map();
      const prototype = of.prototype as Record<string, Handler>;
      for (const key of this.#scanner.getAllMethodNames(prototype)) {
        const method = prototype[key];
        if (method !== undefined) names.set(method, key);
      }
      this.#methods.set(of, names);
    }
    return names.get(handler) ?? handler.name;
  }
}

type Rates = NestRateLimitOptions | readonly NestRateLimitOptions[];

/** The limit of HTTP calls; its refusals are thrown, so it writes none but those that come while a handler runs. */
export function requestLimit(
  target: LimitTarget,
  options: NestLimitOptions,
  name: string,
  methodNameOf: (context: ExecutionContext) => string | undefined = () => name,
): RequestLimit {
  const { skip, priority } = options;
  const isMade = isGuard(target) || isGuards(target);
  const alike = Object.fromEntries(
    Object.entries(options).filter(
      ([key]) => !Object.hasOwn(MODULES_OWN, key) && !(isMade && Object.hasOwn(GUARDS_OWN, key)),
    ),
  ) as LimitOptions;
  return new RequestLimit(
    target,
    {
      ...alike,
      skip: skip && ((req) => skip(contextOf(req))),
      priority: priority && ((req) => priority(contextOf(req))),
    },
    { defaultName: name, methodNameOf: (req) => methodNameOf(contextOf(req)) },
  );
}

/** Methods of a class that Nest calls from outside: those with metadata of a route, a pattern, a resolver. */
export function handlersOf(of: Type, scanner: MetadataScanner): Handler[] {
  const prototype = of.prototype as Record<string, Handler | undefined> | undefined;
  if (prototype === undefined) return [];
  return scanner
    .getAllMethodNames(prototype)
    .map((key) => prototype[key])
    .filter((method): method is Handler => method !== undefined && isHandler(method));
}

/** Metadata keys by which Nest knows a handler; its packages may not be installed. */
const HANDLER_KEYS = [
  'path',
  'microservices:pattern',
  'message',
  'graphql:resolver_type',
  'graphql:resolve_reference',
];

function isHandler(method: Handler): boolean {
  return HANDLER_KEYS.some((key) => Reflect.hasMetadata(key, method));
}

/** A provider that is called from outside: a gateway, a resolver. */
export function isEntrance(metatype: unknown): boolean {
  if (typeof metatype !== 'function') return false;
  return (
    Reflect.hasMetadata('websockets:is_gateway', metatype) ||
    Reflect.hasMetadata('graphql:resolver_type', metatype) ||
    handlersOf(metatype as Type, new MetadataScanner()).some((method) =>
      Reflect.hasMetadata('graphql:resolver_type', method),
    )
  );
}

/** A handler's own goes before its controller's. */
function isSkipped(key: string, of: Type, handler: Handler): boolean {
  return (Reflect.getMetadata(key, handler) ?? Reflect.getMetadata(key, of)) === true;
}

function pick(options: object, keys: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).filter(
      ([key, value]) => Object.hasOwn(keys, key) && value !== undefined,
    ),
  );
}

function isGuards(target: unknown): target is Guards {
  return typeof target === 'object' && target !== null && 'guardOf' in target;
}

function isGuard(target: unknown): target is Guard {
  return (
    typeof target === 'object' &&
    target !== null &&
    'tryAcquire' in target &&
    !('guardOf' in target)
  );
}
