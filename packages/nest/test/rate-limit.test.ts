import 'reflect-metadata';
import type { Server } from 'node:http';
import type { ElimitEvent } from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  type Type,
  UseGuards,
} from '@nestjs/common';
import request from 'supertest';
import {
  ELIMIT_GUARDS,
  ElimitModule,
  type ElimitRootOptions,
  type Guards,
  MaxConcurrency,
  RateLimit,
  RateLimitGuard,
  SkipRateLimit,
} from '../src/index.js';
import { listen, PLATFORMS, type Platform, portOf } from './harness.js';

let app: INestApplication | undefined;
afterEach(async () => {
  (app?.getHttpServer() as Server | undefined)?.closeAllConnections();
  await app?.close();
  app = undefined;
});

async function serve(
  controllers: Type[],
  options: ElimitRootOptions = {},
  platform: Platform = 'express',
  proxies: string | boolean = false,
): Promise<(path: string, user?: string) => request.Test> {
  @Module({
    imports: [ElimitModule.forRoot({ registry: false, onEvent: () => {}, ...options })],
    controllers,
  })
  class RateModule {}
  app = await listen(RateModule, platform, proxies);
  await app.listen(0, '127.0.0.1');
  const url = `http://127.0.0.1:${portOf(app)}`;
  return (path, user = 'nobody') => request(url).get(path).set('x-user', user);
}

async function statuses(get: () => request.Test, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await get()).status);
  return seen;
}

const clock = new VirtualClock();
const two = { limit: 2, ttl: 60_000, clock, registry: false } as const;
const userOf = (context: ExecutionContext): string =>
  context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-user'] ?? '';

describe('@RateLimit', () => {
  it.each(PLATFORMS)('answers with 429, headers and the ELIMIT body, on %s', async (platform) => {
    @Controller()
    class Api {
      @RateLimit(two) @Get() get() {
        return 'ok';
      }
    }
    const get = await serve([Api], {}, platform);
    const first = await get('/').expect(200);
    expect(first.headers.ratelimit).toBe('"Api.get";r=1;t=30');
    await get('/').expect(200);
    const refused = await get('/').expect(429);
    expect(refused.body).toMatchObject({ code: 'ELIMIT', errno: 2004, reason: 'rate' });
    expect(refused.headers).toMatchObject({ 'retry-after': '30', 'x-bd-error-code': '2004' });
  });

  it.each<{ it: string; platform: Platform; proxies: string | boolean; warnings: string[] }>([
    {
      it: 'believes everybody',
      platform: 'express',
      proxies: true,
      warnings: [
        "WARN_TRUST_PROXY: rate limit Api.get: 'trust proxy' is true, so a client chooses the address it is counted by: name your proxies, or their number",
      ],
    },
    {
      it: 'believes nobody',
      platform: 'express',
      proxies: false,
      warnings: [
        "WARN_FORWARDED_IGNORED: rate limit Api.get: requests carry X-Forwarded-For or Forwarded, and 'trust proxy' is off: behind a proxy all clients share its address",
      ],
    },
    { it: 'knows its proxies', platform: 'express', proxies: 'loopback', warnings: [] },
    {
      it: 'believes everybody',
      platform: 'fastify',
      proxies: true,
      warnings: [
        'WARN_TRUST_PROXY: rate limit Api.get: trustProxy believes everybody, so a client chooses the address it is counted by: name the addresses of your proxies',
      ],
    },
    {
      it: 'believes nobody',
      platform: 'fastify',
      proxies: false,
      warnings: [
        'WARN_FORWARDED_IGNORED: rate limit Api.get: requests carry X-Forwarded-For or Forwarded, and trustProxy is off: behind a proxy all clients share its address',
      ],
    },
    { it: 'knows its proxies', platform: 'fastify', proxies: 'loopback', warnings: [] },
  ])('warns once where $platform $it', async ({ platform, proxies, warnings }) => {
    @Controller()
    class Api {
      @RateLimit(two) @Get() get() {}
    }
    const told: string[] = [];
    const onEvent = (event: ElimitEvent): void => {
      if (event.type === 'warning') told.push(`${event.code}: ${event.message}`);
    };
    const get = await serve([Api], { onEvent }, platform, proxies);
    const from = (address: string): request.Test => get('/').set('x-forwarded-for', address);
    await from('1.2.3.4').expect(200);
    await from('1.2.3.4').expect(200);
    await from('1.2.3.4').expect(429);
    await from('5.6.7.8').expect(proxies === false ? 429 : 200);
    expect(told).toEqual(warnings);
  });

  it('gives each handler of a class a limiter of its own, or one for all if it is shared', async () => {
    @RateLimit(two)
    @Controller('own')
    class Own {
      @Get('a') a() {}
      @Get('b') b() {}
      @SkipRateLimit() @Get('open') open() {}
      @RateLimit({ ...two, limit: 1 }) @Get('one') one() {}
    }
    @RateLimit({ ...two, shared: true })
    @Controller('shared')
    class Shared {
      @Get('a') a() {}
      @Get('b') b() {}
    }
    const get = await serve([Own, Shared]);
    expect(await statuses(() => get('/own/a'), 3)).toEqual([200, 200, 429]);
    expect(await statuses(() => get('/own/b'), 3)).toEqual([200, 200, 429]);
    expect(await statuses(() => get('/own/open'), 3)).toEqual([200, 200, 200]);
    expect(await statuses(() => get('/own/one'), 2)).toEqual([200, 429]);
    expect(await statuses(() => get('/shared/a'), 2)).toEqual([200, 200]);
    expect(await statuses(() => get('/shared/b'), 1)).toEqual([429]);
  });

  it('takes several at once, and the module one for handlers without', async () => {
    @Controller()
    class Api {
      @RateLimit([
        { ...two, name: 'short' },
        { ...two, limit: 3, name: 'long' },
      ])
      @Get('both')
      both() {}
      @Get('plain') plain() {}
    }
    const get = await serve([Api], { rateLimit: { ...two, limit: 1 } });
    const { headers } = await get('/both').expect(200);
    expect(headers['ratelimit-policy']).toBe('"Api.both:short";q=2;w=60, "Api.both:long";q=3;w=60');
    expect(await statuses(() => get('/plain'), 2)).toEqual([200, 429]);
  });

  it('counts by getTracker and generateKey, of its options or of a subclass', async () => {
    @Controller()
    class Api {
      @RateLimit({ ...two, getTracker: userOf }) @Get('options') options() {}
      @RateLimit({ ...two, generateKey: (_context, tracker) => `one of ${tracker.length}` })
      @Get('key')
      key() {}
    }
    const get = await serve([Api]);
    expect(await statuses(() => get('/options', 'ann'), 3)).toEqual([200, 200, 429]);
    expect(await statuses(() => get('/options', 'bob'), 1)).toEqual([200]);
    expect(await statuses(() => get('/key'), 3)).toEqual([200, 200, 429]);
    await app?.close();

    @Injectable()
    class ByUser extends RateLimitGuard {
      protected override getTracker(context: ExecutionContext): string {
        return userOf(context);
      }
      protected override shouldSkip(context: ExecutionContext): boolean {
        return userOf(context) === 'root';
      }
    }
    @Controller()
    class Plain {
      @RateLimit(two) @Get() get() {}
    }
    const getBy = await serve([Plain], { rateLimitGuard: ByUser });
    expect(await statuses(() => getBy('/', 'ann'), 3)).toEqual([200, 200, 429]);
    expect(await statuses(() => getBy('/', 'bob'), 1)).toEqual([200]);
    expect(await statuses(() => getBy('/', 'root'), 3)).toEqual([200, 200, 200]);
    await app?.close();

    @UseGuards(ByUser)
    @Controller()
    class ByHand {
      @RateLimit(two) @Get() get() {}
    }
    const getByHand = await serve([ByHand], { global: false });
    expect(await statuses(() => getByHand('/', 'ann'), 3)).toEqual([200, 200, 429]);
    expect(await statuses(() => getByHand('/', 'bob'), 1)).toEqual([200]);
  });

  it('comes before the limit: who is over his share takes no slot', async () => {
    @Controller()
    class Both {
      @MaxConcurrency(5)
      @RateLimit({ ...two, limit: 1, message: async () => Promise.resolve('no') })
      @Get()
      get() {}
    }
    const get = await serve([Both]);
    await get('/').expect(200);
    expect((await get('/').expect(429)).body).toMatchObject({ message: 'no' });
    const { admitted } = app?.get<Guards>(ELIMIT_GUARDS).guardOf('Both.get').snapshot() ?? {};
    expect(admitted).toBe(1);
  });
});
