import 'reflect-metadata';
import type { Server } from 'node:http';
import { createRateLimiter, createRegistry, type ElimitEvent, type Registry } from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  Module,
  Scope,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import request from 'supertest';
import {
  ElimitModule,
  type ElimitRootOptions,
  RateLimit,
  RateLimitGuard,
} from '../../src/index.js';
import { listen } from '../harness.js';

const apps: INestApplication[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) {
    (app.getHttpServer() as Server).closeAllConnections();
    await app.close();
  }
});

const clock = new VirtualClock();
const two = { limit: 2, ttl: 60_000 };

/** Asks one after the other; resolves with the statuses. */
type Ask = (path: string, times: number) => Promise<number[]>;

async function serve(
  controllers: Type[],
  options: ElimitRootOptions = {},
  imports: Type[] = [],
): Promise<Ask> {
  @Module({
    imports: [
      ElimitModule.forRoot({ registry: false, clock, onEvent: () => {}, ...options }),
      ...imports,
    ],
    controllers,
  })
  class RateModule {}
  const app = await listen(RateModule, 'express');
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  return async (path, times) => {
    const seen: number[] = [];
    for (let i = 0; i < times; i++) {
      seen.push((await request(app.getHttpServer() as Server).get(path)).status);
    }
    return seen;
  };
}

const namesIn = (registry: Registry): string[] =>
  registry.sources().map((source) => source.snapshot().name);

describe('of several rate limits, each counts', () => {
  it.each<{ it: string; list: NonNullable<ElimitRootOptions['rateLimit']> }>([
    { it: 'the narrow one first', list: [two, { name: 'wide', limit: 100, ttl: 60_000 }] },
    {
      it: 'the wide one first',
      list: [
        { limit: 100, ttl: 60_000 },
        { name: 'narrow', ...two },
      ],
    },
  ])('of a handler and of the module, $it', async ({ list }) => {
    @Controller()
    class Api {
      @RateLimit(list) @Get('own') own() {}
      @Get('plain') plain() {}
    }
    const ask = await serve([Api], { rateLimit: list });
    expect(await ask('/own', 3)).toEqual([200, 200, 429]);
    expect(await ask('/plain', 3)).toEqual([200, 200, 429]);
  });

  it('of limiters that were made before, which have names of their own', async () => {
    const made = (limit: number) => createRateLimiter({ limit, clock, registry: false });
    @Controller()
    class Api {
      @RateLimit([{ limiter: made(100) }, { limiter: made(2) }]) @Get() get() {}
    }
    const ask = await serve([Api]);
    expect(await ask('/', 3)).toEqual([200, 200, 429]);
  });
});

describe('rate limiters are made when the application starts', () => {
  it('and are listed where the module says, for guards of the module and for those bound by hand', async () => {
    @Controller('own')
    class Own {
      @RateLimit(two) @Get('a') a() {}
      @Get('b') b() {}
    }
    const registry = createRegistry();
    await serve([Own], { registry, rateLimit: { rate: 5 } });
    expect(namesIn(registry)).toEqual(['server', 'Own.a', 'Own.b']);

    @UseGuards(RateLimitGuard)
    @RateLimit(two)
    @Controller('by-hand')
    class ByHand {
      @Get() get() {}
    }
    const ofOther = createRegistry();
    const ask = await serve([ByHand], { registry: ofOther, global: false });
    expect(namesIn(ofOther)).toEqual(['server', 'ByHand.get']);
    expect(await ask('/by-hand', 3)).toEqual([200, 200, 429]);
  });

  it('so that applications with handlers of one name are not warned of limits made per request', async () => {
    const events: ElimitEvent[] = [];
    for (let i = 0; i < 4; i++) {
      @RateLimit(two)
      @Controller()
      class Alike {
        @Get() get() {}
        @Get('later') later() {}
      }
      const onEvent = (event: ElimitEvent) => events.push(event);
      const ask = await serve([Alike], { onEvent });
      // the first request shows us the server, whose later ones we know from their arrival on
      expect(await ask('/', 1)).toEqual([200]);
      expect(await ask('/later', 1)).toEqual([200]);
    }
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
  });
});

describe('what guards of one class count is one thing', () => {
  it('for a call that meets two of them', async () => {
    @UseGuards(RateLimitGuard)
    @Controller()
    class Twice {
      @RateLimit(two) @Get() get() {}
    }
    const registry = createRegistry();
    const ask = await serve([Twice], { registry });
    expect(await ask('/', 3)).toEqual([200, 200, 429]);
    expect(namesIn(registry)).toEqual(['server', 'Twice.get']);
  });

  it('for a limit that is shared by controllers of several modules', async () => {
    @UseGuards(RateLimitGuard)
    @Controller('one')
    class One {
      @Get() get() {}
    }
    @UseGuards(RateLimitGuard)
    @Controller('two')
    class Two {
      @Get() get() {}
    }
    @Module({ controllers: [Two] })
    class Other {}
    const rateLimit = { ...two, shared: true };
    const ask = await serve([One], { global: false, rateLimit }, [Other]);
    expect(await ask('/one', 1)).toEqual([200]);
    expect(await ask('/two', 2)).toEqual([200, 429]);
  });

  it('for guards that are made for each request, which count by what they were given', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class ByUser extends RateLimitGuard {
      // by hand: what is injected into a base class, its heirs hand on
      constructor(
        @Inject(Symbol.for('@elimit/nest/handler-limits')) limits: unknown,
        @Inject(REQUEST) private readonly req: { url: string },
      ) {
        super(limits);
      }
      protected override getTracker(_context: ExecutionContext): string {
        return this.req.url;
      }
    }
    @UseGuards(ByUser)
    @Controller()
    class Api {
      @RateLimit(two) @Get() get() {}
    }
    const ask = await serve([Api], { global: false });
    expect(await ask('/?ann', 3)).toEqual([200, 200, 429]);
    expect(await ask('/?bob', 1)).toEqual([200]);
  });

  it('for guards that are made for each request, without a module', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class ByUrl extends RateLimitGuard {
      constructor(@Inject(REQUEST) private readonly req: { url: string }) {
        super();
      }
      protected override getTracker(_context: ExecutionContext): string {
        return this.req.url;
      }
    }
    @UseGuards(ByUrl)
    @Controller()
    class Api {
      @RateLimit({ ...two, registry: false }) @Get() get() {}
    }
    @Module({ controllers: [Api] })
    class Alone {}
    const app = await listen(Alone, 'express');
    apps.push(app);
    await app.listen(0, '127.0.0.1');
    const seen: number[] = [];
    for (let i = 0; i < 3; i++) {
      seen.push((await request(app.getHttpServer() as Server).get('/')).status);
    }
    expect(seen).toEqual([200, 200, 429]);
  });
});
