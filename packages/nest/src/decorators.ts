import { booleanOf, textOf } from '@elimit/core';
import { createParamDecorator, Inject, SetMetadata } from '@nestjs/common';
import { hangUpOf } from './http-context.js';
import { wanted } from './injected.js';
import type {
  MaxConcurrencyOptions,
  MaxConcurrencyTarget,
  NestRateLimitOptions,
} from './options.js';
import {
  breakerToken,
  ELIMIT_GUARDS,
  guardToken,
  MAX_CONCURRENCY,
  RATE_LIMIT,
  SKIP_LIMIT,
  SKIP_RATE_LIMIT,
} from './tokens.js';

/** Metadata that `@MaxConcurrency` leaves. */
export interface MaxConcurrencyMetadata {
  readonly target: MaxConcurrencyTarget;
  readonly options: MaxConcurrencyOptions;
}

/**
 * Limits how many calls of a handler are served at once. A handler has its own guard; on a controller, each of its
 * handlers gets one with that value, unless `shared: true`. A handler's decorator replaces its controller's, and the
 * module's `methods` replace both.
 *
 * Bad values and options are refused when the application starts, with the handler's name: with a TypeError or a
 * RangeError.
 *
 * @param target - a number from 1, `'auto'`, `'timeout'`, `'gradient'`, `'unlimited'`, `{ timeoutMs, maxConcurrency }`,
 *   `{ type, … }`, or a guard or guards made before
 * @param options - of its own calls; they go before the module's
 */
export function MaxConcurrency(
  target: MaxConcurrencyTarget,
  options: MaxConcurrencyOptions = {},
): MethodDecorator & ClassDecorator {
  return SetMetadata(MAX_CONCURRENCY, { target, options } satisfies MaxConcurrencyMetadata);
}

/**
 * Calls go through unlimited and uncounted. `@SkipLimit(false)` takes a controller's back for a handler.
 *
 * @throws TypeError for something else than `true` or `false`
 */
export function SkipLimit(skip = true): MethodDecorator & ClassDecorator {
  return SetMetadata(SKIP_LIMIT, booleanOf('@SkipLimit', skip));
}

/**
 * Limits how many calls of a handler a client may start: `{ limit, ttl }`, or `{ rate, burst }`, or several of them.
 * On a controller, each of its handlers gets its own, unless `shared: true`. A handler's decorator replaces its
 * controller's. Read over HTTP only.
 *
 * Bad options are refused when the application starts, with the handler's name: with a TypeError or a RangeError.
 *
 * @param options - of several, each has a `name` of its own (one may have none), or a `limiter` made before
 */
export function RateLimit(
  options: NestRateLimitOptions | readonly NestRateLimitOptions[],
): MethodDecorator & ClassDecorator {
  return SetMetadata(RATE_LIMIT, options);
}

/**
 * No rate limit. `@SkipRateLimit(false)` takes a controller's back for a handler.
 *
 * @throws TypeError for something else than `true` or `false`
 */
export function SkipRateLimit(skip = true): MethodDecorator & ClassDecorator {
  return SetMetadata(SKIP_RATE_LIMIT, booleanOf('@SkipRateLimit', skip));
}

/**
 * Gives a handler an `AbortSignal` that aborts, with a `ClientGoneError`, when its client hangs up before the answer
 * has ended. In a context without a socket it never does.
 */
export const HangUp = createParamDecorator((_data: unknown, context) => hangUpOf(context));

/**
 * Injects the `Guard` of a handler, by its name: `@InjectGuard('Orders.list')`. A name that no handler has fails the
 * start of the application, and the error lists the names there are.
 */
export function InjectGuard(name: string): ParameterDecorator & PropertyDecorator {
  wanted('guards').add(textOf('@InjectGuard', name));
  return Inject(guardToken(name));
}

/** Injects the module's `Guards`: the server's guard, and one for each handler. */
export function InjectGuards(): ParameterDecorator & PropertyDecorator {
  return Inject(ELIMIT_GUARDS);
}

/**
 * Injects the `CircuitBreaker` of a method that is decorated with `@Breaker`, by its name:
 * `@InjectBreaker('Catalog.load')`. A name that no method has fails the start of the application.
 */
export function InjectBreaker(name: string): ParameterDecorator & PropertyDecorator {
  wanted('breakers').add(textOf('@InjectBreaker', name));
  return Inject(breakerToken(name));
}
