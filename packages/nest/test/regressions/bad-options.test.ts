import 'reflect-metadata';
import { createGuard, createGuards, createRateLimiter, type RateStore } from '@elimit/core';
import { TestRateStore } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Module, type Type } from '@nestjs/common';
import {
  ElimitModule,
  type ElimitRootOptions,
  limit,
  MaxConcurrency,
  RateLimit,
  RateLimitGuard,
} from '../../src/index.js';
import { listen } from '../harness.js';

// Bad options are refused when the application starts, not with a 500 for each request.

let app: INestApplication | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(options: unknown, controllers: Type[] = []): Promise<void> {
  @Module({ imports: [ElimitModule.forRoot(options as ElimitRootOptions)], controllers })
  class OptionsModule {}
  app = await listen(OptionsModule, 'express');
}

interface Case {
  it: string;
  options: unknown;
  message: string;
}

const guards = createGuards({ registry: false });
const guard = createGuard({ limit: 1, registry: false });
const limiter = createRateLimiter({ rate: 1, registry: false });

describe('ElimitModule refuses when the application starts', () => {
  it.each<Case>([
    { it: 'null', options: null, message: 'elimit must be an object, got null' },
    { it: 'text', options: 'x', message: 'elimit must be an object, got "x"' },
    {
      it: 'an option of no limit of its own',
      options: { handler: () => {} },
      message: 'elimit.handler is not an option; known: serverMaxConcurrency, ',
    },
    { it: 'a name', options: { name: 'x' }, message: 'elimit.name is not an option' },
    { it: 'shared', options: { shared: true }, message: 'elimit.shared is not an option' },
    {
      it: 'a global that is text',
      options: { global: 'no' },
      message: 'elimit.global must be true or false, got "no"',
    },
    {
      it: 'an exception that is no function',
      options: { exception: 5 },
      message: 'elimit.exception must be a function, got 5',
    },
    {
      it: 'contexts that are a number',
      options: { contexts: 5 },
      message: "elimit.contexts must be an array of names such as 'rpc', got 5",
    },
    {
      it: 'contexts that are text',
      options: { contexts: 'rpc' },
      message: 'elimit.contexts must be an array of names such as \'rpc\', got "rpc"',
    },
    {
      it: 'a context that is no text',
      options: { contexts: ['rpc', 5] },
      message: 'elimit.contexts[1] must be a non-empty string, got 5',
    },
    {
      it: 'a skip that is no function',
      options: { skip: 5 },
      message: 'limit.skip must be a function, got 5',
    },
    {
      it: 'a priority that is no function',
      options: { priority: 'critical' },
      message: 'limit.priority must be a function, got "critical"',
    },
    {
      it: 'a cap that is null, which would be no cap',
      options: { serverMaxConcurrency: null },
      message: 'elimit.serverMaxConcurrency must be left out or have a value, got null',
    },
    {
      it: 'a cap of 0',
      options: { serverMaxConcurrency: 0 },
      message: 'elimit.serverMaxConcurrency: max concurrency 0 would admit nothing',
    },
    {
      it: 'a bad limit by name',
      options: { methods: { 'Api.get': -1 } },
      message: "elimit.methods['Api.get']: max concurrency -1 would admit nothing",
    },
    {
      it: 'guards that are none',
      options: { guards: {} },
      message: 'elimit.guards must be of createGuards, got an object',
    },
    {
      it: 'one guard as guards',
      options: { guards: guard },
      message: 'elimit.guards must be of createGuards, got an object',
    },
    {
      it: 'what belongs to guards made before',
      options: { guards, dryRun: true },
      message: 'elimit.dryRun belongs to the guards: give it to createGuards',
    },
    {
      it: 'a guard for rates that is none',
      options: { rateLimitGuard: 5 },
      message: 'elimit.rateLimitGuard must be a class that extends RateLimitGuard, got 5',
    },
    {
      it: 'another class as the guard for rates',
      options: { rateLimitGuard: Date },
      message:
        'elimit.rateLimitGuard must be a class that extends RateLimitGuard, got function Date',
    },
    {
      it: 'a guard for rates that nothing would bind',
      options: { rateLimitGuard: RateLimitGuard, global: false },
      message: 'elimit.rateLimitGuard needs global: true',
    },
    {
      it: 'a rate limit that is null',
      options: { rateLimit: null },
      message: 'elimit.rateLimit must be left out or have a value, got null',
    },
    {
      it: 'a rate limit without a rate',
      options: { rateLimit: {} },
      message: 'elimit.rateLimit: rateLimit.rate is missing',
    },
    {
      it: 'a rate below 0',
      options: { rateLimit: { rate: -1 } },
      message: 'elimit.rateLimit: rateLimit.rate must be a number from 0 to 1000000000, got -1',
    },
    {
      it: 'a bad limit in a list',
      options: { rateLimit: [{ limit: 5 }, { name: 'x', limit: -1 }] },
      message: 'elimit.rateLimit[1]: rateLimit.limit must be a whole number from 0',
    },
    {
      it: 'two limits without names',
      options: {
        rateLimit: [
          { limit: 100, ttl: 60_000 },
          { limit: 2, ttl: 60_000 },
        ],
      },
      message:
        'elimit.rateLimit[1]: a limit before it has the same name: give each a name of its own',
    },
  ])('$it', async ({ options, message }) => {
    await expect(start(options)).rejects.toThrow(message);
  });

  it('what a factory makes of it', async () => {
    const made = async (options: unknown): Promise<void> => {
      @Module({ imports: [ElimitModule.forRootAsync({ useFactory: () => options as object })] })
      class AsyncModule {}
      app = await listen(AsyncModule, 'express');
    };
    await expect(made(null)).rejects.toThrow('elimit must be an object, got null');
    await expect(made({ global: false })).rejects.toThrow(
      'elimit.global belongs beside useFactory',
    );
    expect(() => ElimitModule.forRootAsync({} as never)).toThrow(
      'elimit.useFactory must be a function, got undefined',
    );
    expect(() => ElimitModule.forRootAsync({ useClass: Date } as never)).toThrow(
      'elimit.useClass is not an option; known: imports, inject, useFactory, global',
    );
  });
});

describe('@MaxConcurrency is refused when the application starts, with', () => {
  it.each<Case & { target?: unknown }>([
    {
      it: 'no value',
      target: undefined,
      options: {},
      message: 'max concurrency undefined is no limit',
    },
    { it: 'null', target: null, options: {}, message: 'max concurrency null is no limit' },
    { it: 'options that are null', options: null, message: 'maxConcurrency must be an object' },
    ...['onEvent', 'clock', 'timers', 'random', 'registry'].map((name) => ({
      it: name,
      options: { [name]: () => {} },
      message: `maxConcurrency.${name} belongs to all guards of the module: give it to ElimitModule`,
    })),
    ...['contexts', 'rateLimit', 'exception', 'handler', 'methods', 'statusCod'].map((name) => ({
      it: name,
      options: { [name]: undefined },
      message: `maxConcurrency.${name} is not an option; known: name, shared, skip, `,
    })),
    {
      it: 'a skip that is no function',
      options: { skip: true },
      message: 'limit.skip must be a function, got true',
    },
    {
      it: 'a dryRun of a guard that was made before',
      target: guard,
      options: { dryRun: true },
      message: 'maxConcurrency.dryRun belongs to the guard',
    },
    {
      it: 'shared on a handler',
      options: { shared: true },
      message: 'maxConcurrency.shared is for controllers',
    },
    {
      it: 'a shared that is text',
      options: { shared: 'yes' },
      message: 'maxConcurrency.shared must be true or false, got "yes"',
    },
    {
      it: 'an empty name',
      options: { name: '' },
      message: 'maxConcurrency.name must be a non-empty string, got ""',
    },
  ])('$it', async ({ options, message, ...rest }) => {
    const target = 'target' in rest ? rest.target : 1;
    @Controller()
    class Api {
      @MaxConcurrency(target as never, options as object) @Get() get() {}
    }
    await expect(start({ registry: false }, [Api])).rejects.toThrow(
      `@MaxConcurrency on Api.get: ${message}`,
    );
  });

  it('a name that another one gives another limit', async () => {
    @Controller()
    class Api {
      @MaxConcurrency({ type: 'auto' }, { name: 'db' }) @Get('a') a() {}
      @MaxConcurrency({ type: 'auto' }, { name: 'db' }) @Get('b') b() {}
      @MaxConcurrency(50, { name: 'db' }) @Get('c') c() {}
    }
    await expect(start({ registry: false }, [Api])).rejects.toThrow(
      '@MaxConcurrency on Api.c: another decorator gives the name db another limit',
    );
  });
});

describe('@RateLimit is refused when the application starts, with', () => {
  it.each<Case>([
    { it: 'nothing', options: undefined, message: ' on Api.get: rateLimit must be an object' },
    { it: 'null', options: null, message: ' on Api.get: rateLimit must be an object, got null' },
    {
      it: 'a rate below 0',
      options: { rate: -1 },
      message: ' on Api.get: rateLimit.rate must be a number from 0 to 1000000000, got -1',
    },
    {
      it: 'a limit that is text',
      options: { limit: '5', ttl: 1000 },
      message: ' on Api.get: rateLimit.limit must be a whole number from 0',
    },
    {
      it: 'a ttl of 0',
      options: { limit: 5, ttl: 0 },
      message: ' on Api.get: rateLimit.ttl must be a number from 0.0001 to 31622400000, got 0',
    },
    {
      it: 'a ttl that is text',
      options: { limit: 5, ttl: '60s' },
      message: ' on Api.get: rateLimit.ttl must be a number from 0.0001 to 31622400000, got "60s"',
    },
    {
      it: 'a ttl without a limit',
      options: { rate: 5, ttl: 1000 },
      message: ' on Api.get: rateLimit.ttl needs rateLimit.limit',
    },
    {
      it: 'a name that is empty',
      options: [{ limit: 100 }, { name: '', limit: 2 }],
      message: '[1] on Api.get: rateLimit.name must be a non-empty string, got ""',
    },
    {
      it: 'a name that is a number',
      options: { name: 5, limit: 2 },
      message: ' on Api.get: rateLimit.name must be a non-empty string, got 5',
    },
    {
      it: 'ttl together with windowMs',
      options: { limit: 5, ttl: 1000, windowMs: 5 },
      message: ' on Api.get: rateLimit.ttl and rateLimit.windowMs are the same: give one',
    },
    {
      it: 'a ttl that is null, which would be a minute',
      options: { limit: 5, ttl: null },
      message: ' on Api.get: rateLimit.ttl must be left out or have a value, got null',
    },
    {
      it: 'a handler, which Nest has not',
      options: { limit: 5, handler() {} },
      message: ' on Api.get: rateLimit.handler is not an option: catch the ElimitException',
    },
    {
      it: 'a keyGenerator, which goes by another name',
      options: { limit: 5, keyGenerator: () => 'x' },
      message: ' on Api.get: rateLimit.keyGenerator is not an option: say getTracker',
    },
    {
      it: 'a typo',
      options: { limit: 5, getTraker: () => 'x' },
      message: ' on Api.get: rateLimit.getTraker is not an option; known: rate, burst, ',
    },
    {
      it: 'a tracker that is no function',
      options: { limit: 5, getTracker: 'ip' },
      message: ' on Api.get: rateLimit.getTracker must be a function, got "ip"',
    },
    {
      it: 'a cost below 0',
      options: { limit: 5, cost: -1 },
      message: ' on Api.get: rateLimit.cost must be a number of at least 0, got -1',
    },
    {
      it: 'a store that is none',
      options: { limit: 5, store: {} },
      message: ' on Api.get: rateLimit.store must be a RateStore',
    },
    {
      it: 'shared on a handler',
      options: { limit: 5, shared: true },
      message: ' on Api.get: shared is for controllers and the module',
    },
    {
      it: 'a bad second limit',
      options: [{ limit: 5 }, { name: 'x', rate: Number.NaN }],
      message: '[1] on Api.get: rateLimit.rate must be a number from 0 to 1000000000, got NaN',
    },
    {
      it: 'two limits without names',
      options: [{ limit: 100 }, { limit: 2 }],
      message: '[1] on Api.get: a limit before it has the same name: give each a name of its own',
    },
    {
      it: 'two limits of one name',
      options: [
        { name: 'x', limit: 100 },
        { name: 'y', limit: 9 },
        { name: 'x', limit: 2 },
      ],
      message: '[2] on Api.get: a limit before it has the same name: give each a name of its own',
    },
    {
      it: 'one limiter twice',
      options: [{ limiter }, { limiter }],
      message: '[1] on Api.get: a limit before it has the same limiter',
    },
  ])('$it', async ({ options, message }) => {
    @Controller()
    class Api {
      @RateLimit(options as object) @Get() get() {}
    }
    await expect(start({ registry: false }, [Api])).rejects.toThrow(`@RateLimit${message}`);
    @RateLimit(options as object)
    @Controller()
    class OfClass {
      @Get() get() {}
    }
    if (/shared is/.test(message)) return;
    await expect(start({ registry: false }, [OfClass])).rejects.toThrow(
      `@RateLimit${message.replace('Api', 'OfClass')}`,
    );
  });

  it('nothing that opens a store: those are opened by limiters that count', async () => {
    const opened: string[] = [];
    const counting = new TestRateStore();
    const store: RateStore = {
      open: (context) => {
        opened.push(context.name);
        return counting.open(context);
      },
    };
    @Controller()
    class Api {
      @RateLimit({ limit: 5, store }) @Get() get() {}
    }
    await start({ registry: false }, [Api]);
    await app?.init();
    expect(opened).toEqual(['Api.get']);
  });
});

describe('limit(…) refuses at once', () => {
  it.each<Case & { target?: unknown }>([
    {
      it: 'a handler, which Nest has not',
      options: { handler: () => {} },
      message: 'limit.handler is not an option; known: name, exception, skip, ',
    },
    {
      it: "a module's option",
      options: { contexts: ['rpc'] },
      message: 'limit.contexts is not an option',
    },
    {
      it: 'an exception that is no function',
      options: { exception: 5 },
      message: 'limit.exception must be a function, got 5',
    },
    {
      it: 'null for an option',
      options: { dispatch: null },
      message: 'limit.dispatch must be left out or have a value, got null',
    },
    {
      it: 'a dryRun of a guard that was made before',
      target: guard,
      options: { dryRun: true },
      message: 'limit.dryRun belongs to the guard: give it to createGuard',
    },
    {
      it: 'an empty name',
      target: guards,
      options: { name: '' },
      message: 'limit.name must be a non-empty string, got ""',
    },
    {
      it: 'a skip that is no function',
      options: { skip: 5 },
      message: 'limit.skip must be a function, got 5',
    },
  ])('$it', ({ target = 1, options, message }) => {
    expect(() => limit(target as never, options as object)).toThrow(message);
  });
});
