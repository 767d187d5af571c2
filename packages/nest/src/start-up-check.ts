import 'reflect-metadata';
import { tell } from '@elimit/core';
import type { OnApplicationBootstrap, Type } from '@nestjs/common';
import * as nest from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { ElimitGuard } from './elimit.guard.js';
import { ElimitInterceptor } from './elimit.interceptor.js';
import { type Handler, type HandlerLimits, handlersOf } from './handler-limits.js';
import { makeLimiters, RateLimitGuard } from './rate-limit.guard.js';
import { MAX_CONCURRENCY, RATE_LIMIT } from './tokens.js';

/** Nest's own keys for what `@UseGuards` and `@UseInterceptors` bind. */
const GUARDS = '__guards__';
const INTERCEPTORS = '__interceptors__';

/** Before Nest 12, gateways have none of the global interceptors. It does not tell its version; this came with it. */
const GATEWAYS_HAVE_GLOBALS = 'StandardSchemaValidationPipe' in nest;

interface Global {
  readonly guards: readonly unknown[];
  readonly interceptors: readonly unknown[];
}

/** When the application has started: warns of what nothing reads, and has rate limiters made. */
export class StartUpCheck implements OnApplicationBootstrap {
  readonly #limits: HandlerLimits;
  readonly #modules: ModulesContainer;
  readonly #scanner = new MetadataScanner();

  constructor(limits: HandlerLimits, modules: ModulesContainer) {
    this.#limits = limits;
    this.#modules = modules;
  }

  onApplicationBootstrap(): void {
    const all = globalOf(this.#modules);
    for (const name of this.#limits.unmetMethods()) {
      this.#warn(`elimit.methods['${name}'], whose name no limited handler has`);
    }
    const seen = new Set<unknown>();
    for (const { controllers, providers, injectables } of this.#modules.values()) {
      for (const { metatype } of controllers.values()) {
        if (typeof metatype !== 'function') continue;
        this.#limiters(metatype as Type, all, (guard) => injectables.get(guard as Type)?.instance);
      }
      for (const { metatype } of [...controllers.values(), ...providers.values()]) {
        if (typeof metatype !== 'function' || seen.has(metatype)) continue;
        seen.add(metatype);
        this.#look(metatype as Type, all);
      }
    }
  }

  /** @param instanceOf - the guard that Nest has made in this module for a class that is bound by hand */
  #limiters(of: Type, all: Global, instanceOf: (guard: unknown) => unknown): void {
    for (const handler of handlersOf(of, this.#scanner)) {
      if (!Reflect.hasMetadata('path', handler)) continue;
      for (const guard of [...all.guards, ...bound(GUARDS, of, handler)]) {
        makeLimiters(typeof guard === 'function' ? instanceOf(guard) : guard, of, handler);
      }
    }
  }

  #look(of: Type, all: Global): void {
    const prototype = of.prototype as Record<string, Handler> | undefined;
    if (prototype === undefined) return;
    const handlers = new Set(handlersOf(of, this.#scanner));
    const methods = this.#scanner
      .getAllMethodNames(prototype)
      .map((key) => prototype[key])
      .filter((method): method is Handler => typeof method === 'function');
    for (const [key, decorator, Guard] of [
      [MAX_CONCURRENCY, '@MaxConcurrency', ElimitGuard],
      [RATE_LIMIT, '@RateLimit', RateLimitGuard],
    ] as const) {
      const ofClass = Reflect.hasMetadata(key, of);
      if (ofClass && handlers.size === 0) {
        this.#warn(`${decorator} on ${of.name}, which has no handlers`);
      }
      for (const method of methods) {
        const own = Reflect.hasMetadata(key, method);
        if (!own && !(ofClass && handlers.has(method))) continue;
        const where = `${decorator} on ${this.#limits.nameOf(of, method)}`;
        if (!handlers.has(method)) this.#warn(`${where}, which is no handler`);
        else if (!this.#isRead(of, method, Guard, key, all)) this.#warn(where);
      }
    }
  }

  #isRead(
    of: Type,
    method: Handler,
    Guard: typeof ElimitGuard | typeof RateLimitGuard,
    key: string,
    all: Global,
  ): boolean {
    if (Reflect.hasMetadata('path', method)) {
      return [...all.guards, ...bound(GUARDS, of, method)].some((guard) => Guard.is(guard));
    }
    // no HTTP: an interceptor limits it, and nothing counts rates
    if (key !== MAX_CONCURRENCY) return false;
    if (bound(INTERCEPTORS, of, method).some((one) => ElimitInterceptor.is(one))) return true;
    const { contexts = [] } = this.#limits.options;
    const type = typeOf(of, method);
    return (
      (type !== 'ws' || GATEWAYS_HAVE_GLOBALS) &&
      contexts.includes(type) &&
      all.interceptors.some((one) => ElimitInterceptor.is(one))
    );
  }

  #warn(what: string): void {
    const code = 'WARN_NEST_UNREAD';
    const message = `${what}: nothing reads it; see docs/nest.md`;
    const { onEvent } = this.#limits.options;
    if (onEvent === undefined) {
      process.emitWarning(message, { type: 'ElimitWarning', code });
      return;
    }
    tell(onEvent, { type: 'warning', code, name: 'nest', message });
  }
}

function bound(key: string, of: Type, method: Handler): unknown[] {
  return [of, method].flatMap(
    (at) => (Reflect.getMetadata(key, at) as unknown[] | undefined) ?? [],
  );
}

function typeOf(of: Type, method: Handler): string {
  if (Reflect.hasMetadata('websockets:is_gateway', of)) return 'ws';
  return Reflect.hasMetadata('microservices:pattern', method) ? 'rpc' : 'graphql';
}

/** What stands in front of all handlers, however it came there. Nest shows that to nobody: without it, nothing is global. */
function globalOf(modules: ModulesContainer): Global {
  type Config = Record<string, (() => readonly unknown[]) | undefined>;
  const [any] = modules.values();
  const config = (any as unknown as { container?: { applicationConfig?: Config } } | undefined)
    ?.container?.applicationConfig;
  const all = (...names: string[]): unknown[] =>
    names.flatMap((name) => config?.[name]?.call(config) ?? []).map(instanceOrClass);
  return {
    guards: all('getGlobalGuards', 'getGlobalRequestGuards'),
    interceptors: all('getGlobalInterceptors', 'getGlobalRequestInterceptors'),
  };
}

/** Enhancers of a request's scope are known by their wrappers. */
function instanceOrClass(enhancer: unknown): unknown {
  const { metatype } = (enhancer ?? {}) as { metatype?: unknown };
  return metatype ?? enhancer;
}
