import 'reflect-metadata';
import type { Server } from 'node:http';
import { createGuard, type Guards, processRegistry } from '@elimit/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Module, type Type } from '@nestjs/common';
import request from 'supertest';
import {
  ELIMIT_GUARDS,
  ElimitGuard,
  ElimitModule,
  type ElimitRootOptions,
  limit,
  MaxConcurrency,
  RateLimitGuard,
} from '../../src/index.js';
import { listen } from '../harness.js';

let app: INestApplication | undefined;
afterEach(async () => {
  (app?.getHttpServer() as Server | undefined)?.closeAllConnections();
  await app?.close();
  app = undefined;
});

async function serve(controllers: Type[], options: ElimitRootOptions = {}): Promise<Guards> {
  @Module({
    imports: [ElimitModule.forRoot({ registry: false, onEvent: () => {}, ...options })],
    controllers,
  })
  class OptionsModule {}
  app = await listen(OptionsModule, 'express');
  await app.listen(0, '127.0.0.1');
  return app.get<Guards>(ELIMIT_GUARDS);
}

const get = (path: string) => request(app?.getHttpServer() as Server).get(path);

describe('of a decorator and its module', () => {
  it('what the one leaves undefined, the other says', async () => {
    @Controller()
    class Api {
      @MaxConcurrency(1, { statusCode: undefined, message: 'mine' }) @Get() get() {}
    }
    const guards = await serve([Api], { statusCode: 529, message: 'ours' });
    guards.guardOf('Api.get').tryAcquire();
    expect((await get('/').expect(529)).body).toMatchObject({ message: 'mine' });
  });

  it('limits by name go before guards that were made before, too', async () => {
    const guard = createGuard({ limit: 9, registry: false });
    @Controller()
    class Api {
      @MaxConcurrency(guard) @Get() get() {}
    }
    const guards = await serve([Api], { methods: { 'Api.get': 1 } });
    guards.guardOf('Api.get').tryAcquire();
    await get('/').expect(503);
    expect(guard.snapshot().admitted).toBe(0);
  });

  it('a name stands for the limit that was given it, whichever handler is met first', async () => {
    @Controller()
    class Api {
      @Get('a') a() {}
      @MaxConcurrency(3, { name: 'Api.a' }) @Get('b') b() {}
      @MaxConcurrency(3, { name: 'Api.a' }) @Get('c') c() {}
    }
    const guards = await serve([Api], { serverMaxConcurrency: 100 });
    expect(guards.maxConcurrencyOf('Api.a')).toBe(3);
  });
});

describe('an exception that is made of nothing', () => {
  it('is ours', async () => {
    @Controller()
    class Api {
      @MaxConcurrency(1) @Get() get() {}
    }
    const guards = await serve([Api], { exception: () => undefined });
    guards.guardOf('Api.get').tryAcquire();
    expect((await get('/').expect(503)).body).toMatchObject({ code: 'ELIMIT' });
  });
});

describe('limit(…) and guards without a module', () => {
  it('list no guards but those that they ask', () => {
    const listed = (): number => processRegistry().sources().length;
    const before = listed();
    const kept = [limit(1, { registry: false }), new RateLimitGuard(), new ElimitGuard()];
    expect([kept.length, listed() - before]).toEqual([3, 0]);
  });
});
