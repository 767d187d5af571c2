import 'reflect-metadata';
import type { Server } from 'node:http';
import {
  BreakerOpenError,
  createGuard,
  createRegistry,
  type ElimitEvent,
  type Guard,
  type Guards,
  RejectedError,
} from '@elimit/core';
import { RawClient } from '@elimit/testkit';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  ImATeapotException,
  type INestApplication,
  Injectable,
  Module,
  type ModuleMetadata,
  type NestInterceptor,
  Param,
  Post,
  Sse,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { catchError, NEVER, type Observable, of, startWith } from 'rxjs';
import request from 'supertest';
import {
  ElimitException,
  ElimitGuard,
  ElimitModule,
  type ElimitRootOptions,
  HangUp,
  InjectGuard,
  InjectGuards,
  limit,
  MaxConcurrency,
  SkipLimit,
} from '../src/index.js';
import { listen, PLATFORMS, portOf } from './harness.js';

let app: INestApplication | undefined;
afterEach(async () => {
  (app?.getHttpServer() as Server | undefined)?.closeAllConnections();
  await app?.close();
  app = undefined;
});

const registry = createRegistry();

/** Starts an application; `dispatch: false` where handlers are held from within a test. */
async function serve(
  controllers: Type[],
  options: ElimitRootOptions = {},
  more: ModuleMetadata = {},
  platform: 'express' | 'fastify' = 'express',
  after: Type[] = [],
): Promise<string> {
  @Module({
    imports: [
      ElimitModule.forRoot({ registry, onEvent: (event) => events.push(event), ...options }),
      ...after,
    ],
    controllers,
    ...more,
  })
  class TestModule {}
  app = await listen(TestModule, platform);
  await app.listen(0, '127.0.0.1');
  return `http://127.0.0.1:${portOf(app)}`;
}
const events: ElimitEvent[] = [];
afterEach(() => {
  events.length = 0;
});

/** The guards of the application that runs. */
function guards(): Guards {
  return (app as INestApplication).get<Guards>(Symbol.for('@elimit/nest/guards'));
}

/** Fills a guard until it refuses; returns how many it took. */
function fill(guard: Guard): number {
  let taken = 0;
  while (taken < 100 && guard.tryAcquire().admitted) taken++;
  return taken;
}

describe('@MaxConcurrency', () => {
  @MaxConcurrency(3)
  @Controller('orders')
  class Orders {
    @Get() list() {
      return 'list';
    }
    @MaxConcurrency(1) @Get('one') one() {
      return 'one';
    }
    @SkipLimit() @Get('open') open() {
      return 'open';
    }
  }

  it('gives each handler its own guard, with the value of its class or its own', async () => {
    const url = await serve([Orders]);
    expect(guards().names()).toEqual(['Orders.list', 'Orders.one']);
    expect(fill(guards().guardOf('Orders.list'))).toBe(3);
    await request(url).get('/orders').expect(503);
    await request(url).get('/orders/one').expect(200, 'one');
    await request(url).get('/orders/open').expect(200, 'open');
    expect(guards().guardOf('Orders.one').snapshot()).toMatchObject({ admitted: 1, inflight: 0 });
  });

  it('gives a controller one guard for all of its handlers, if that is to be shared', async () => {
    @MaxConcurrency(2, { shared: true })
    @Controller()
    class Shared {
      @Get('a') a() {
        return 'a';
      }
      @Get('b') b() {
        return 'b';
      }
    }
    const url = await serve([Shared]);
    expect(guards().names()).toEqual(['Shared']);
    await request(url).get('/a').expect(200);
    await request(url).get('/b').expect(200);
    expect(guards().guardOf('Shared').snapshot().admitted).toBe(2);
  });

  it('takes a class back for a handler: @SkipLimit(false)', async () => {
    @SkipLimit()
    @MaxConcurrency(1)
    @Controller()
    class Skipped {
      @Get('a') a() {
        return 'a';
      }
      @SkipLimit(false) @Get('b') b() {
        return 'b';
      }
    }
    await serve([Skipped]);
    expect(guards().names()).toEqual(['Skipped.b']);
  });

  it('tells two classes of one name, and what they inherit, apart', async () => {
    class Base {
      @MaxConcurrency(4) @Get() list() {
        return this.constructor.name;
      }
    }
    const one = (): Type => {
      @Controller('one')
      class Same extends Base {}
      return Same;
    };
    const two = (): Type => {
      @Controller('two')
      class Same extends Base {}
      return Same;
    };
    const url = await serve([one(), two()]);
    await request(url).get('/two').expect(200);
    expect(guards().names()).toEqual(['Same.list', 'Same#2.list']);
    expect(guards().guardOf('Same.list').snapshot().admitted).toBe(0);
    expect(guards().guardOf('Same#2.list').snapshot().admitted).toBe(1);
  });

  it('gives way to what the module says of a handler by name', async () => {
    await serve([Orders], { methods: { 'Orders.one': 7 } });
    expect(guards().maxConcurrencyOf('Orders.one')).toBe(7);
  });

  it('is refused when the application starts, if it makes no sense', async () => {
    @Controller()
    class Wrong {
      @MaxConcurrency(0) @Get() list() {
        return '';
      }
    }
    await expect(serve([Wrong])).rejects.toThrow(/^@MaxConcurrency on Wrong\.list: .*0/);
  });
});

describe('handlers without a decorator', () => {
  @Controller()
  class Plain {
    @Get() get() {
      return 'plain';
    }
  }

  it('go through uncounted', async () => {
    const url = await serve([Plain]);
    await request(url).get('/').expect(200);
    expect(guards().names()).toEqual([]);
    expect(guards().server.snapshot().admitted).toBe(0);
  });

  it('are counted under a cap for the server', async () => {
    const url = await serve([Plain], { serverMaxConcurrency: 1 });
    const entry = guards().server.tryAcquire();
    const refused = await request(url).get('/').expect(503);
    expect(refused.body).toMatchObject({ reason: 'server' });
    if (entry.admitted) entry.release('success');
    await request(url).get('/').expect(200);
  });

  it('get the limit that the module has for them', async () => {
    await serve([Plain], { methodMaxConcurrency: 5 });
    expect(guards().maxConcurrencyOf('Plain.get')).toBe(5);
  });
});

describe('a refusal', () => {
  @Catch(ElimitException)
  class Rewrites implements ExceptionFilter {
    catch(exception: ElimitException, host: ArgumentsHost): void {
      const res = host.switchToHttp().getResponse<{
        status(code: number): { send(body: object): void };
      }>();
      res.status(420).send({ was: exception.getStatus(), ...exception.rejection });
    }
  }

  @MaxConcurrency(1)
  @Controller()
  class Busy {
    @Get() plain() {
      return '';
    }
    @UseFilters(Rewrites) @Get('filtered') filtered() {
      return '';
    }
  }

  it.each(PLATFORMS)(
    'is an exception that filters see and may rewrite, on %s',
    async (platform) => {
      const url = await serve([Busy], {}, {}, platform);
      fill(guards().guardOf('Busy.plain'));
      fill(guards().guardOf('Busy.filtered'));
      const plain = await request(url).get('/').expect(503);
      expect(plain.body).toMatchObject({ code: 'ELIMIT', errno: 2004, reason: 'concurrency' });
      expect(plain.headers['x-bd-error-code']).toBe('2004');
      expect(Number(plain.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      const filtered = await request(url).get('/filtered').expect(420);
      expect(filtered.body).toMatchObject({
        was: 503,
        reason: 'concurrency',
        name: 'Busy.filtered',
      });
    },
  );

  it('can be worded, or be another exception', async () => {
    const url = await serve([Busy], { message: 'Later.', statusCode: 529 });
    fill(guards().guardOf('Busy.plain'));
    expect((await request(url).get('/').expect(529)).body).toMatchObject({ message: 'Later.' });
    await app?.close();
    const other = await serve([Busy], { exception: ({ name }) => new ImATeapotException(name) });
    fill(guards().guardOf('Busy.plain'));
    expect((await request(other).get('/').expect(418)).body).toMatchObject({
      message: 'Busy.plain',
    });
  });

  it('of a guard or a breaker inside a handler gets its status, without the ELIMIT mark', async () => {
    @Controller()
    class Inner {
      @Get(':what') get(@Param('what') what: string) {
        if (what === 'breaker') throw new BreakerOpenError('db', 1500);
        throw new RejectedError({
          admitted: false,
          reason: what === 'rate' ? 'rate' : 'concurrency',
          retryAfterMs: 2500,
          name: 'inner',
        });
      }
    }
    const url = await serve([Inner]);
    const breaker = await request(url).get('/breaker').expect(503);
    expect(breaker.body).toEqual({
      statusCode: 503,
      message: 'Service Unavailable',
      code: 'ERR_BREAKER_OPEN',
    });
    expect(breaker.headers['retry-after']).toBe('2');
    expect(breaker.headers).not.toHaveProperty('x-bd-error-code');
    await request(url).get('/concurrency').expect(503);
    await request(url).get('/rate').expect(429);
  });
});

describe('the slot of a call', () => {
  @Injectable()
  class Swallows implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(catchError(() => of('never mind')));
    }
  }

  const hungUp: unknown[] = [];
  const started: AbortSignal[] = [];

  @MaxConcurrency(2)
  @Controller()
  class Ends {
    @UseInterceptors(Swallows) @Get('swallowed') swallowed() {
      throw new Error('thrown');
    }
    @Sse('events') events(): Observable<{ data: string }> {
      return NEVER.pipe(startWith({ data: 'first' }));
    }
    @Get('hangs') hangs(@HangUp() signal: AbortSignal) {
      started.push(signal);
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          hungUp.push((signal.reason as { name: string }).name);
          resolve('ended');
        });
      });
    }
    @Post() post() {
      return 'posted';
    }
  }

  it.each(PLATFORMS)(
    'comes back when an interceptor swallows the error, on %s',
    async (platform) => {
      const url = await serve([Ends], {}, {}, platform);
      await request(url).get('/swallowed').expect(200, 'never mind');
      const { inflight, outcomes } = guards().guardOf('Ends.swallowed').snapshot();
      expect([inflight, outcomes.success]).toEqual([0, 1]);
    },
  );

  it.each(PLATFORMS)('comes back when an @Sse() stream has begun, on %s', async (platform) => {
    await serve([Ends], {}, {}, platform);
    const guard = guards().guardOf('Ends.events');
    for (let i = 0; i < 3; i++) {
      const client = await RawClient.open(portOf(app as INestApplication));
      client.request('GET /events');
      await client.until(/data: first/);
      while (guard.inflight > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      client.destroy();
    }
    expect(guard.snapshot().outcomes.ignored).toBe(3);
  });

  it.each(PLATFORMS)('comes back when @HangUp() ends a handler, on %s', async (platform) => {
    hungUp.length = started.length = 0;
    await serve([Ends], {}, {}, platform);
    const guard = guards().guardOf('Ends.hangs');
    const client = await RawClient.open(portOf(app as INestApplication));
    client.request('GET /hangs');
    while (started.length < 1) await new Promise((resolve) => setTimeout(resolve, 2));
    client.destroy();
    while (guard.inflight > 0) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(hungUp).toEqual(['AbortError']);
    expect(guard.snapshot().outcomes.abandoned).toBe(1);
  });

  it.each(PLATFORMS)('is not taken for a body that the parser refuses, on %s', async (platform) => {
    const url = await serve([Ends], {}, {}, platform);
    await request(url).post('/').type('json').send('{').expect(400);
    expect(guards().guardOf('Ends.post').snapshot().admitted).toBe(0);
  });
});

describe('guards', () => {
  @Injectable()
  class Reader {
    constructor(
      @InjectGuard('Read.list') readonly guard: Guard,
      @InjectGuards() readonly all: Guards,
    ) {}
  }

  @Controller()
  class Read {
    @MaxConcurrency(9) @Get() list() {
      return '';
    }
  }

  it('are injectable by the name of their handler', async () => {
    await serve([Read], {}, { providers: [Reader] });
    const reader = (app as INestApplication).get(Reader);
    expect(reader.guard).toBe(guards().guardOf('Read.list'));
    expect(reader.all).toBe(guards());
  });

  it('are counted once for a call that meets them twice: bound by hand, and by the module', async () => {
    @UseGuards(ElimitGuard)
    @Controller()
    class Twice {
      @UseGuards(ElimitGuard) @MaxConcurrency(1) @Get() get() {
        return 'once';
      }
    }
    const url = await serve([Twice]);
    await request(url).get('/').expect(200, 'once');
    expect(guards().guardOf('Twice.get').snapshot()).toMatchObject({ admitted: 1, inflight: 0 });
  });

  it('stand in front of the global guards of modules that are imported after it', async () => {
    const asked: string[] = [];
    const asking = (name: string) => ({
      provide: APP_GUARD,
      useValue: { canActivate: () => asked.push(name) > 0 },
    });
    @Module({ providers: [asking('later import')] })
    class Auth {}
    await serve([Read], {}, { providers: [asking('root')] }, 'express', [Auth]);
    const free = guards().guardOf('Read.list');
    expect(fill(free)).toBe(9);
    await request(app?.getHttpServer() as Server)
      .get('/')
      .expect(503);
    expect(asked).toEqual(['root']);
  });

  it('work by hand without the module', async () => {
    @Controller()
    class ByHand {
      @UseGuards(ElimitGuard)
      @MaxConcurrency(createGuard({ limit: 1, registry: false }))
      @Get('a')
      a() {
        return 'a';
      }
      @UseGuards(limit(1, { registry: false, name: 'b' })) @Get('b') b() {
        return 'b';
      }
    }
    @Module({ controllers: [ByHand] })
    class Bare {}
    app = await listen(Bare, 'express');
    await app.listen(0, '127.0.0.1');
    const url = `http://127.0.0.1:${portOf(app)}`;
    for (const path of ['/a', '/b', '/a', '/b']) await request(url).get(path).expect(200);
    expect(app.getHttpServer()).toBeDefined();
  });

  it('are made by forRootAsync as well, from what is injected', async () => {
    @Module({ providers: [{ provide: 'CAP', useValue: 6 }], exports: ['CAP'] })
    class Config {}
    @Module({
      imports: [
        ElimitModule.forRootAsync({
          imports: [Config],
          inject: ['CAP'],
          useFactory: async (cap: number) =>
            Promise.resolve({ methods: { 'Read.list': cap }, registry }),
        }),
      ],
      controllers: [Read],
    })
    class AsyncModule {}
    app = await listen(AsyncModule, 'express');
    await app.listen(0, '127.0.0.1');
    await request(app.getHttpServer() as Server)
      .get('/')
      .expect(200);
    expect(guards().guardOf('Read.list').snapshot()).toMatchObject({
      maxConcurrency: 6,
      admitted: 1,
    });
  });

  it.each<{ it: string; options: object; message: RegExp }>([
    { it: 'an unknown option', options: { skp: 1 }, message: /skp is not an option/ },
    { it: 'a bad cap', options: { serverMaxConcurrency: -1 }, message: /-1/ },
    {
      it: 'options of guards that were made before',
      options: { guards: { guardOf: () => {}, tryAcquire: () => {} }, maxNames: 3 },
      message: /^elimit\.\w+ belongs to the guards/,
    },
  ])('are refused when the application starts: $it', async ({ options, message }) => {
    await expect(serve([Read], options)).rejects.toThrow(message);
  });
});

describe('at start-up', () => {
  @Controller()
  class Limited {
    @MaxConcurrency(1) @Get() get() {
      return '';
    }
    @UseGuards(ElimitGuard) @MaxConcurrency(1) @Get('read') read() {
      return '';
    }
  }
  @Injectable()
  class Service {
    @MaxConcurrency(1) work() {
      return '';
    }
  }
  const warnings = (): string[] =>
    events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));

  it('warns of decorators that nothing reads', async () => {
    await serve([Limited], { global: false }, { providers: [Service] });
    expect(warnings()).toEqual([
      '@MaxConcurrency on Limited.get: nothing reads it; see docs/nest.md',
      '@MaxConcurrency on Service.work, which is no handler: nothing reads it; see docs/nest.md',
    ]);
  });

  it('warns of limits by name that no handler has; other names are for guards by hand', async () => {
    await serve([Limited], { methods: { 'Limited.gett': 5, 'Limited.get': 5, db: 5 } });
    expect(warnings()).toEqual([
      "elimit.methods['Limited.gett'], whose name no limited handler has: nothing reads it; see docs/nest.md",
    ]);
  });

  it('is quiet when all are read', async () => {
    await serve([Limited]);
    expect(warnings()).toEqual([]);
  });

  it('knows guards that were bound for the whole application by hand', async () => {
    @Module({
      imports: [ElimitModule.forRoot({ registry, global: false, onEvent: (e) => events.push(e) })],
      controllers: [Limited],
    })
    class ByHand {}
    app = await listen(ByHand, 'express');
    app.useGlobalGuards(app.get(ElimitGuard));
    await app.listen(0, '127.0.0.1');
    expect(warnings()).toEqual([]);
    await request(app.getHttpServer() as Server)
      .get('/')
      .expect(200);
    expect(guards().guardOf('Limited.get').snapshot().admitted).toBe(1);
  });

  it('warns on the process, if nobody listens', async () => {
    const emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await serve([Limited], { global: false, onEvent: undefined });
    expect(emitWarning.mock.calls).toEqual([
      [
        expect.stringMatching(/Limited\.get/),
        expect.objectContaining({ code: 'WARN_NEST_UNREAD' }),
      ],
    ]);
    emitWarning.mockRestore();
  });
});
