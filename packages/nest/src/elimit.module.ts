import { type Guard, show } from '@elimit/core';
import { type DynamicModule, Module, type Provider, Scope, type Type } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, ModuleRef, ModulesContainer } from '@nestjs/core';
import { breakerOf } from './breaker.decorator.js';
import { ElimitGuard } from './elimit.guard.js';
import { ElimitInterceptor } from './elimit.interceptor.js';
import { HandlerLimits } from './handler-limits.js';
import { wanted } from './injected.js';
import { checkAsyncOptions, checkRootOptions } from './option-checks.js';
import type { ElimitAsyncOptions, ElimitModuleOptions, ElimitRootOptions } from './options.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { StartUpCheck } from './start-up-check.js';
import {
  breakerToken,
  ELIMIT_GUARDS,
  ELIMIT_OPTIONS,
  guardToken,
  HANDLER_LIMITS,
} from './tokens.js';

/**
 * Limits the handlers of an application by their decorators. Imported once, in the root module; what it provides
 * is there for all modules.
 */
@Module({})
export class ElimitModule {
  /**
   * The module, with these options.
   *
   * @throws TypeError at once for what is no option and for a bad `global`; TypeError or RangeError when the
   *   application starts, for all other bad options and for bad decorators
   */
  static forRoot(options: ElimitRootOptions = {}): DynamicModule {
    checkRootOptions(options);
    const { global = true, ...rest } = options;
    return moduleOf({ provide: ELIMIT_OPTIONS, useValue: rest }, global, []);
  }

  /**
   * `forRoot`, with options that are made by what is injected: a configuration service, say.
   *
   * @throws as `forRoot`; for bad options that `useFactory` makes, when the application starts
   */
  static forRootAsync(options: ElimitAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    const { global = true, imports = [], inject = [], useFactory } = options;
    return moduleOf({ provide: ELIMIT_OPTIONS, useFactory, inject }, global, imports);
  }
}

function moduleOf(
  options: Provider,
  isGlobal: boolean,
  imports: NonNullable<DynamicModule['imports']>,
): DynamicModule {
  const common: Provider[] = [
    options,
    {
      provide: HANDLER_LIMITS,
      useFactory: (given: ElimitModuleOptions, modules: ModulesContainer) => {
        const limits = new HandlerLimits(given, modules);
        checkRateLimitGuard(given.rateLimitGuard, isGlobal);
        return limits;
      },
      inject: [ELIMIT_OPTIONS, ModulesContainer],
    },
    {
      provide: ELIMIT_GUARDS,
      useFactory: (limits: HandlerLimits) => limits.guards,
      inject: [HANDLER_LIMITS],
    },
    {
      provide: StartUpCheck,
      useFactory: (limits: HandlerLimits, modules: ModulesContainer) =>
        new StartUpCheck(limits, modules),
      inject: [HANDLER_LIMITS, ModulesContainer],
    },
    ElimitGuard,
    ElimitInterceptor,
    RateLimitGuard,
    ...(isGlobal ? forAllHandlers() : []),
  ];
  return {
    module: ElimitModule,
    global: true,
    imports,
    // read when Nest scans the module: by then all decorators have been evaluated
    get providers(): Provider[] {
      return [...common, ...injected()];
    },
    get exports(): (string | symbol | Type)[] {
      return [
        ELIMIT_OPTIONS,
        HANDLER_LIMITS,
        ELIMIT_GUARDS,
        ElimitGuard,
        ElimitInterceptor,
        RateLimitGuard,
        ...injectedTokens(),
      ];
    },
  };
}

function checkRateLimitGuard(guard: unknown, isGlobal: boolean): void {
  if (guard === undefined) return;
  if (typeof guard !== 'function' || !RateLimitGuard.is(guard)) {
    throw new TypeError(
      `elimit.rateLimitGuard must be a class that extends RateLimitGuard, got ${show(guard)}`,
    );
  }
  if (!isGlobal) {
    throw new TypeError('elimit.rateLimitGuard needs global: true; else bind it with @UseGuards');
  }
}

/** Rates first: who is over his own share must not take a slot. */
function forAllHandlers(): Provider[] {
  return [
    {
      provide: APP_GUARD,
      // the limits have checked their options
      useFactory: (
        { options: { rateLimitGuard = RateLimitGuard } }: HandlerLimits,
        ref: ModuleRef,
      ) => ref.create(rateLimitGuard),
      inject: [HANDLER_LIMITS, ModuleRef],
    },
    {
      provide: APP_GUARD,
      useFactory: (limits: HandlerLimits) => new ElimitGuard(limits),
      inject: [HANDLER_LIMITS],
    },
    {
      provide: APP_INTERCEPTOR,
      useFactory: (limits: HandlerLimits) =>
        new ElimitInterceptor(limits, limits.options.contexts ?? []),
      inject: [HANDLER_LIMITS],
    },
  ];
}

/** Made where somebody injects them: a name may have been asked for by another application in this process. */
function injected(): Provider[] {
  return [
    ...[...wanted('guards')].map((name) => ({
      provide: guardToken(name),
      useFactory: (limits: HandlerLimits): Guard => limits.guardNamed(name),
      inject: [HANDLER_LIMITS],
      scope: Scope.TRANSIENT,
    })),
    ...[...wanted('breakers')].map((name) => ({
      provide: breakerToken(name),
      useFactory: () => breakerOf(name),
      scope: Scope.TRANSIENT,
    })),
  ];
}

function injectedTokens(): string[] {
  return [...[...wanted('guards')].map(guardToken), ...[...wanted('breakers')].map(breakerToken)];
}
