import type {
  Guard,
  Guards,
  GuardsOptions,
  MaxConcurrency,
  Priority,
  Rejection,
} from '@elimit/core';
import type { LimitOptions, RateLimitOptions } from '@elimit/node-http';
import type {
  CanActivate,
  ExecutionContext,
  InjectionToken,
  ModuleMetadata,
  OptionalFactoryDependency,
  Type,
} from '@nestjs/common';

/**
 * What a limit can be told of its calls; alike in all adapters but for Nest's context. `isFailure` is given Node's own
 * request and response, on Fastify too, not the `ExecutionContext`; like all that is about sockets it counts over HTTP only.
 */
export interface NestLimitOptions
  extends Omit<LimitOptions, 'skip' | 'handler' | 'priority' | 'name'> {
  /** True for calls that go through unlimited and uncounted. */
  readonly skip?: ((context: ExecutionContext) => boolean) | undefined;
  /** A call's class; under pressure the lower ones go first. @default 'default' */
  readonly priority?: ((context: ExecutionContext) => Priority) | undefined;
}

/**
 * What `@MaxConcurrency` takes besides its value: all that is about its own calls. What a module's guards have in
 * common, `onEvent` and the registry say, is the module's, or that of a guard made before; such a guard also has
 * its own `dryRun`.
 */
export interface MaxConcurrencyOptions
  extends Omit<NestLimitOptions, 'onEvent' | 'clock' | 'timers' | 'random' | 'registry'> {
  /** The guard's name. @default the controller's and the handler's: `Orders.list` */
  readonly name?: string | undefined;
  /** On a controller: one guard for all of its handlers, named after it. @default false: each has its own */
  readonly shared?: boolean | undefined;
}

/** What `@MaxConcurrency` takes: a value for a guard of its own, or a guard or guards made before. */
export type MaxConcurrencyTarget = MaxConcurrency | Guard | Guards;

/** What `limit` takes. */
export interface NestGuardOptions extends NestLimitOptions {
  /** The guard's name; with `createGuards`, the method's. @default 'app'; for guards, the controller's and the handler's */
  readonly name?: string | undefined;
  /** Makes, at once, what is thrown for a refusal; if that is `undefined`, it is the default. @default an `ElimitException` */
  readonly exception?: ((rejection: Rejection, context: ExecutionContext) => unknown) | undefined;
}

/** What `@RateLimit` takes. */
export interface NestRateLimitOptions
  extends Omit<RateLimitOptions<[context: ExecutionContext]>, 'handler' | 'keyGenerator'> {
  /** Of several limits at one place, each has another; it is added to the handler's. @default the handler's: `Orders.list` */
  readonly name?: string | undefined;
  /** The window in milliseconds: `windowMs`, as users of other packages know it; give one of the two. @default 60_000 */
  readonly ttl?: number | undefined;
  /** Who is counted. @default the client's address, IPv6 by subnet */
  readonly getTracker?: ((context: ExecutionContext) => string | Promise<string>) | undefined;
  /** The key of that. @default the tracker: each handler has a limiter of its own */
  readonly generateKey?: ((context: ExecutionContext, tracker: string) => string) | undefined;
  /** On a controller or the module: one limiter for all of its handlers. @default false: each has its own */
  readonly shared?: boolean | undefined;
}

/** Options of `ElimitModule`: those of every limit, those of `createGuards`, and the module's own. */
export interface ElimitModuleOptions
  extends NestLimitOptions,
    Pick<GuardsOptions, 'serverMaxConcurrency' | 'methods' | 'maxNames' | 'serverName'> {
  /** The limit of handlers without a decorator. @default none: they go through uncounted, unless there is a cap for the server */
  readonly methodMaxConcurrency?: MaxConcurrency | undefined;
  /** Guards of `createGuards` made before, in place of its options, `dryRun`, `random` and `registry` among them. */
  readonly guards?: Guards | undefined;
  /** Contexts besides HTTP whose handlers are limited, as Nest names them: `rpc`, `graphql`, and from Nest 12 on `ws`. @default none */
  readonly contexts?: readonly string[] | undefined;
  /** Makes, at once, what is thrown for a refusal; if that is `undefined`, it is the default. @default an `ElimitException` */
  readonly exception?: ((rejection: Rejection, context: ExecutionContext) => unknown) | undefined;
  /** The rate limit of handlers without one; each has its own, unless it is `shared`. Several: each with its `name`. @default none */
  readonly rateLimit?: NestRateLimitOptions | readonly NestRateLimitOptions[] | undefined;
  /** In place of `RateLimitGuard`: a class that extends it. Not with `global: false`. @default RateLimitGuard */
  readonly rateLimitGuard?: Type<CanActivate> | undefined;
}

/** What `forRoot` takes. */
export interface ElimitRootOptions extends ElimitModuleOptions {
  /** False: nothing is registered for all handlers; bind `ElimitGuard` and `RateLimitGuard` by hand. @default true */
  readonly global?: boolean | undefined;
}

/** What `forRootAsync` takes. */
export interface ElimitAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** What `useFactory` is called with. @default nothing */
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined;
  /** Makes the module's options; they are checked when the application starts. */
  readonly useFactory: (...args: never[]) => ElimitModuleOptions | Promise<ElimitModuleOptions>;
  /** False: nothing is registered for all handlers. It stands here, since Nest reads it before `useFactory` is called. @default true */
  readonly global?: boolean | undefined;
}
