import 'reflect-metadata';
import { isDeepStrictEqual } from 'node:util';
import {
  createGuards,
  functionOf,
  type Guard,
  type Guards,
  located,
  type RateStore,
} from '@elimit/core';
import {
  isGuards,
  isReadyMade,
  type LimitOptions,
  type LimitTarget,
  type RateLimitOptions,
  RequestLimit,
  RequestRateLimit,
} from '@elimit/node-http';
import type { ExecutionContext, Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import type { MaxConcurrencyMetadata } from './decorators.js';
import { contextOf } from './http-context.js';
import { wanted } from './injected.js';
import {
  callOptionsOf,
  checkDecorator,
  checkModuleOptions,
  checkRateOptions,
  guardsOptionsOf,
  limitOptionsOf,
  picked,
} from './option-checks.js';
import type {
  ElimitModuleOptions,
  MaxConcurrencyOptions,
  MaxConcurrencyTarget,
  NestLimitOptions,
  NestRateLimitOptions,
} from './options.js';
import { MAX_CONCURRENCY, RATE_LIMIT, SKIP_LIMIT, SKIP_RATE_LIMIT } from './tokens.js';

/** A handler as Nest hands it to enhancers: a method, found through the class it is called on. */
export type Handler = (...args: never[]) => unknown;

/** The limit of one handler. */
export interface HandlerLimit {
  readonly name: string;
  readonly guard: Guard;
  /** What the guard is one of, or itself: whom to tell of the event loop. */
  readonly owner: Guard | Guards;
  /** For HTTP. */
  readonly limited: RequestLimit;
  /** The module's, and over them the decorator's. */
  readonly options: NestLimitOptions & Pick<ElimitModuleOptions, 'exception'>;
}

type RateOptions = Omit<RateLimitOptions<[context: ExecutionContext]>, 'handler' | 'keyGenerator'>;

/** The rate limits of one handler, still options. */
export interface HandlerRate {
  /** Handlers of one controller that share a limiter have this in common. */
  readonly owner: object;
  /** Tells the limiters of an owner apart. */
  readonly key: unknown;
  readonly name: string;
  /** Where it stands, for messages. */
  readonly where: string;
  readonly options: NestRateLimitOptions;
}

/** Knows the limits of every handler: from decorators, and from the module's options. One for each application. */
export class HandlerLimits {
  // set once
  readonly options: ElimitModuleOptions;
  /** Handlers without a decorator are counted, too. */
  readonly #coversAll: boolean;
  readonly #ofLimits: NestLimitOptions;
  readonly #scanner = new MetadataScanner();
  /** Classes that go by a name, in the order in which they were met. */
  readonly #classes = new Map<string, Type[]>();
  readonly #limits = new WeakMap<object, Map<Handler, HandlerLimit | undefined>>();
  readonly #methods = new WeakMap<object, Map<Handler, string>>();
  readonly #named = new Map<string, Guard>();
  /** What decorators have said, by the guard's name. */
  readonly #told = new Map<string, MaxConcurrencyTarget>();
  /** Made when they are needed: where there is no module, most ask for names or rates alone. */
  #guards: Guards | undefined;

  /** @throws TypeError or RangeError that names the option, or the handler and what is wrong with its limit */
  constructor(options: ElimitModuleOptions = {}, modules?: ModulesContainer) {
    checkModuleOptions(options);
    this.options = options;
    const { guards, serverMaxConcurrency, methodMaxConcurrency } = options;
    this.#coversAll = [guards, serverMaxConcurrency, methodMaxConcurrency].some(
      (value) => value !== undefined,
    );
    this.#guards = guards;
    this.#ofLimits = limitOptionsOf(options);
    if (modules === undefined) return;
    // bad values are refused now, not with the first call
    located('elimit', () => requestLimit(this.guards, this.#ofLimits, 'elimit'));
    for (const { where, options: rate } of this.#ratesAt(this, 'elimit')) {
      located(where, () => this.#try(rate));
    }
    this.#declare(modules);
  }

  get guards(): Guards {
    this.#guards ??= createGuards({
      methodMaxConcurrency: 'unlimited',
      ...guardsOptionsOf(this.options),
    });
    return this.#guards;
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

  /**
   * The rate limits of a handler; the guard makes limiters of them.
   *
   * @throws TypeError that names the handler, and what is wrong with its list
   */
  ratesOf(of: Type, handler: Handler): readonly HandlerRate[] {
    if (isSkipped(SKIP_RATE_LIMIT, of, handler)) return [];
    const level = [handler, of].find((at) => Reflect.hasMetadata(RATE_LIMIT, at)) ?? this;
    const byHandler = this.nameOf(of, handler);
    return this.#ratesAt(level, byHandler).map(({ options, where }): HandlerRate => {
      const isShared = options.shared === true;
      if (isShared && level === handler) {
        throw new TypeError(`${where}: shared is for controllers and the module`);
      }
      const base = !isShared ? byHandler : level === of ? this.#classNameOf(of) : 'all';
      const name = options.name === undefined ? base : `${base}:${options.name}`;
      const owner = isShared ? level : handler;
      return { owner, key: options.limiter ?? name, name, where, options };
    });
  }

  /** What a limiter is made of, the module's part included. */
  rateOptions(options: NestRateLimitOptions, name: string): RateOptions {
    const { ttl, getTracker: _, generateKey: __, shared: ___, ...rest } = picked(options);
    const { onEvent, clock, timers, random, registry } = this.options;
    const isMade = rest.limiter !== undefined; // it has had these
    return {
      ...picked(isMade ? { onEvent } : { onEvent, clock, timers, random, registry }),
      ...rest,
      ...(!isMade && { name }),
      ...(ttl !== undefined && { windowMs: ttl }),
    };
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

  /** Names in the form of handlers' that `methods` gives a limit, and no limited handler has. */
  unmetMethods(): string[] {
    return Object.keys(this.options.methods ?? {}).filter(
      (name) => name.includes('.') && !this.#named.has(name) && !wanted('guards').has(name),
    );
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
    for (const handler of handlersOf(of as Type, this.#scanner)) {
      this.limitOf(of as Type, handler);
      const rates = this.ratesOf(of as Type, handler);
      // the module's have been tried
      if (![of, handler].some((at) => Reflect.hasMetadata(RATE_LIMIT, at))) continue;
      for (const { where, options } of rates) located(where, () => this.#try(options));
    }
  }

  /** What stands at a handler, at a class, or in the module's options: each in order, and unlike the others. */
  #ratesAt(level: object, byHandler: string): Pick<HandlerRate, 'where' | 'options'>[] {
    const ofModule = level === this;
    const given: unknown = ofModule
      ? this.options.rateLimit
      : Reflect.getMetadata(RATE_LIMIT, level);
    if (ofModule && given === undefined) return [];
    const list = (Array.isArray(given) ? given : [given]) as NestRateLimitOptions[];
    const seen = new Set<unknown>();
    return list.map((options, i) => {
      const at = Array.isArray(given) ? `[${i}]` : '';
      const where = ofModule ? `elimit.rateLimit${at}` : `@RateLimit${at} on ${byHandler}`;
      located(where, () => checkRateOptions(options));
      const { limiter, name } = options;
      if (seen.has(limiter ?? name)) {
        // one of the two would count nothing, and nobody would see it
        const what = limiter === undefined ? 'name: give each a name of its own' : 'limiter';
        throw new TypeError(`${where}: a limit before it has the same ${what}`);
      }
      seen.add(limiter ?? name);
      return { where, options };
    });
  }

  /** Makes a limiter that nobody sees, for what it throws. A store is opened by limiters that count. */
  #try(options: NestRateLimitOptions): RequestRateLimit<[ExecutionContext]> {
    const { store, ...rest } = this.rateOptions(options, 'elimit');
    const isStore = typeof (store as { open?: unknown } | undefined)?.open === 'function';
    return new RequestRateLimit<[ExecutionContext]>(
      {
        ...rest,
        ...(rest.limiter === undefined && { registry: false }),
        ...(store !== undefined && { store: isStore ? UNOPENED : store }),
      },
      { addressOf: () => undefined, stateOf: (req) => req },
    );
  }

  #make(of: Type, handler: Handler): HandlerLimit | undefined {
    if (isSkipped(SKIP_LIMIT, of, handler)) return undefined;
    const own = Reflect.getMetadata(MAX_CONCURRENCY, handler) as MaxConcurrencyMetadata | undefined;
    const ofClass = Reflect.getMetadata(MAX_CONCURRENCY, of) as MaxConcurrencyMetadata | undefined;
    const found = own ?? ofClass;
    const byHandler = this.nameOf(of, handler);
    if (found === undefined) {
      if (!this.#coversAll && !this.#isDeclared(byHandler)) return undefined;
      return this.#limitNamed(byHandler, undefined, {});
    }
    return located(`@MaxConcurrency on ${byHandler}`, () => {
      const { target, options } = found;
      checkDecorator(target, options);
      if (options.shared === true && own !== undefined) {
        throw new TypeError('maxConcurrency.shared is for controllers');
      }
      const byDefault = options.shared === true ? this.#classNameOf(of) : byHandler;
      return this.#limitNamed(options.name ?? byDefault, target, options);
    });
  }

  #limitNamed(
    name: string,
    decorated: MaxConcurrencyTarget | undefined,
    { dryRun, ...own }: MaxConcurrencyOptions,
  ): HandlerLimit {
    // what operators say in the module's options goes before what the code says
    const target = this.#isDeclared(name) ? undefined : decorated;
    const isNew = target !== undefined && !this.#isTold(name, target);
    let guard: Guard;
    let owner: Guard | Guards = this.guards;
    if (isReadyMade(target)) {
      guard = isGuards(target) ? target.guardOf(name) : target;
      owner = target;
    } else {
      if (isNew) this.guards.setMaxConcurrency(name, target);
      guard = this.guards.guardOf(name);
      if (dryRun !== undefined) guard.configure({ dryRun });
    }
    this.#named.set(name, guard);
    const options = { ...this.#ofLimits, ...callOptionsOf(own) };
    const limited = requestLimit(owner, options, name);
    const { exception } = this.options;
    return { name, guard, owner, limited, options: { ...options, exception } };
  }

  #isDeclared(name: string): boolean {
    const { methods } = this.options;
    return methods !== undefined && Object.hasOwn(methods, name);
  }

  /**
   * True if another decorator has said the same of this name already.
   *
   * @throws TypeError if it has said something else: one of the two would count for nothing
   */
  #isTold(name: string, target: MaxConcurrencyTarget): boolean {
    const before = this.#told.get(name);
    this.#told.set(name, before ?? target);
    if (before === undefined) return false;
    const isSame =
      before === target ||
      (!isReadyMade(before) && !isReadyMade(target) && isDeepStrictEqual(before, target));
    if (isSame) return true;
    throw new TypeError(`another decorator gives the name ${name} another limit`);
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

/** A store for limiters that are made to see whether they can be. */
const UNOPENED: RateStore = {
  open: () => ({
    holders: 1,
    take: () => Promise.reject(new Error('never asked')),
    refund() {},
    reset: async () => {},
    probe: async () => {},
    close: async () => {},
  }),
};

/** The limit of HTTP calls; its refusals are thrown, so it writes none but those that come while a handler runs. */
export function requestLimit(
  target: LimitTarget,
  options: NestLimitOptions,
  name: string,
  methodNameOf: (context: ExecutionContext) => string | undefined = () => name,
): RequestLimit {
  const { skip, priority, ...alike } = options;
  if (skip !== undefined) functionOf('limit.skip', skip);
  if (priority !== undefined) functionOf('limit.priority', priority);
  return new RequestLimit(
    target,
    {
      ...(alike as LimitOptions),
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
