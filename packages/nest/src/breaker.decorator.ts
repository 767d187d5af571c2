import 'reflect-metadata';
import {
  CircuitBreaker,
  type CircuitBreakerOptions,
  functionOf,
  located,
  objectOf,
} from '@elimit/core';
import { isObservable } from 'rxjs';

/** What `@Breaker` takes: the breaker's options, and what its calls are given. */
export type BreakerDecoratorOptions = CircuitBreakerOptions & {
  /** Answers instead when a call was refused or failed: called on the same object, with the error and the call's arguments. */
  readonly fallback?: ((error: unknown, ...args: never[]) => unknown) | undefined;
};

const BREAKERS = Symbol.for('@elimit/nest/breakers@1');

/** Breakers by name, made when they are first needed: one for each decorated method in this process. */
function breakers(): Map<string, () => CircuitBreaker> {
  const scope = globalThis as { [BREAKERS]?: Map<string, () => CircuitBreaker> };
  scope[BREAKERS] ??= new Map();
  return scope[BREAKERS];
}

/**
 * The breaker of the method that `@Breaker` decorates, by its name: `Catalog.load`.
 *
 * @throws Error that lists the names there are
 */
export function breakerOf(name: string): CircuitBreaker {
  const make = breakers().get(name);
  if (make !== undefined) return make();
  throw new Error(`no breaker is named ${name}; there are: ${[...breakers().keys()].join(', ')}`);
}

/**
 * Puts a circuit breaker around a method of any provider. The method's calls then return promises; while the breaker
 * is open they reject with a `BreakerOpenError`, or get what `fallback` says. A method must not return an Observable.
 *
 * Its name is the class's and the method's, `Catalog.load`. It belongs to the method, not to an instance: all
 * instances in the process share it.
 *
 * @throws TypeError or RangeError for bad options, when the class is evaluated
 */
export function Breaker(options: BreakerDecoratorOptions = {}): MethodDecorator {
  const { fallback, ...rest } = objectOf('breaker', options);
  if (fallback !== undefined) functionOf('breaker.fallback', fallback);
  return (target, key, descriptor: PropertyDescriptor) => {
    const method = functionOf('@Breaker', descriptor.value as unknown) as Method;
    const name = freeName(rest.name ?? `${target.constructor.name}.${String(key)}`);
    located(`@Breaker on ${name}`, () => tryBreaker({ ...rest, name }));
    let made: CircuitBreaker | undefined;
    const breaker = (): CircuitBreaker => {
      made ??= new CircuitBreaker({ ...rest, name });
      return made;
    };
    breakers().set(name, breaker);
    const guarded = function (this: unknown, ...args: unknown[]): Promise<unknown> {
      const run = async (): Promise<unknown> => noObservable(name, await method.apply(this, args));
      if (fallback === undefined) return breaker().execute(run);
      return breaker().execute(run, {
        fallback: (error) => fallback.call(this, error, ...(args as never[])),
      });
    };
    // frameworks read these
    Object.defineProperty(guarded, 'name', { value: method.name, configurable: true });
    Object.defineProperty(guarded, 'length', { value: method.length, configurable: true });
    for (const metadata of Reflect.getOwnMetadataKeys(method) as unknown[]) {
      Reflect.defineMetadata(metadata, Reflect.getOwnMetadata(metadata, method), guarded);
    }
    descriptor.value = guarded;
    return descriptor;
  };
}

/** Makes a breaker that nobody sees, for what it throws: the one that counts is made when it is needed. */
function tryBreaker(options: CircuitBreakerOptions): CircuitBreaker {
  const { cluster } = options;
  const isCluster = typeof (cluster as { join?: unknown } | undefined)?.join === 'function';
  return new CircuitBreaker({
    ...options,
    registry: false,
    ...(isCluster && { cluster: { join: () => () => 0 } }),
  });
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Two classes of one name are two breakers. */
function freeName(name: string): string {
  let free = name;
  for (let n = 2; breakers().has(free); n++) free = `${name}#${n}`;
  return free;
}

function noObservable(name: string, value: unknown): unknown {
  if (!isObservable(value)) return value;
  throw new TypeError(
    `@Breaker on ${name}: an Observable has not failed when it is returned; return a promise, with firstValueFrom`,
  );
}
