import 'reflect-metadata';
import type { Server } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { createRegistry, type Guards, type Rejection, rejectionBody } from '@elimit/core';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Catch,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  Module,
  type NestInterceptor,
  type Provider,
  type RpcExceptionFilter,
  type Type,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  AbstractGraphQLDriver,
  type GqlModuleOptions,
  GraphQLModule,
  Query,
  Resolver,
} from '@nestjs/graphql';
import {
  type ClientProxy,
  ClientProxyFactory,
  MessagePattern,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway, WsException } from '@nestjs/websockets';
import { type GraphQLSchema, graphql } from 'graphql';
import {
  firstValueFrom,
  NEVER,
  type Observable,
  Subject,
  startWith,
  take,
  throwError,
  toArray,
} from 'rxjs';
import request from 'supertest';
import { WebSocket } from 'ws';
import {
  ELIMIT_GUARDS,
  ElimitException,
  ElimitInterceptor,
  ElimitModule,
  type ElimitRootOptions,
  MaxConcurrency,
} from '../src/index.js';
import { portOf } from './harness.js';

// Real transports, on the loopback. By default the module's guard and interceptor let all of this pass untouched;
// the in-flight guard of one that is held shows whether a call was counted.

const registry = createRegistry();
let app: INestApplication | undefined;
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await app?.close();
  app = undefined;
});

function moduleOf(
  options: ElimitRootOptions,
  parts: { controllers?: Type[]; providers?: Provider[]; imports?: DynamicModule[] },
): Type {
  @Module({
    ...parts,
    imports: [
      ElimitModule.forRoot({ registry, onEvent: () => {}, ...options }),
      ...(parts.imports ?? []),
    ],
  })
  class ContextModule {}
  return ContextModule;
}

async function create(module: Type): Promise<void> {
  app = await NestFactory.create(module, new ExpressAdapter(), {
    logger: false,
    abortOnError: false,
  });
}

const guards = (): Guards => (app as INestApplication).get<Guards>(ELIMIT_GUARDS);

/** Takes a guard's only slot. */
function occupy(name: string): () => void {
  const entry = guards().guardOf(name).tryAcquire();
  if (!entry.admitted) throw new Error(`${name} is occupied already`);
  return () => entry.release('success');
}

const counts = (name: string): unknown => {
  const { admitted, inflight, rejected, outcomes } = guards().guardOf(name).snapshot();
  return [admitted, inflight, rejected.concurrency, outcomes.success, outcomes.failure];
};

describe('a TCP microservice', () => {
  let ticks = new Subject<number>();

  @Injectable()
  class TakesOne implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(take(1));
    }
  }

  @Controller()
  class Sums {
    @MaxConcurrency(1) @MessagePattern('sum') sum(numbers: number[]) {
      if (numbers.length === 0) throw new RpcException('nothing to add');
      return numbers.reduce((a, b) => a + b);
    }
    @MaxConcurrency(1) @MessagePattern('ticks') ticks(): Observable<number> {
      return ticks;
    }
    @UseInterceptors(TakesOne, ElimitInterceptor)
    @MaxConcurrency(1)
    @MessagePattern('endless')
    endless(): Observable<number> {
      return NEVER.pipe(startWith(1));
    }
  }

  async function serve(options: ElimitRootOptions, controller: Type = Sums): Promise<ClientProxy> {
    const port = await freePort();
    await create(moduleOf(options, { controllers: [controller] }));
    app?.connectMicroservice(
      { transport: Transport.TCP, options: { port, host: '127.0.0.1' } },
      { inheritAppConfig: true },
    );
    await app?.startAllMicroservices();
    const client = ClientProxyFactory.create({
      transport: Transport.TCP,
      options: { port, host: '127.0.0.1' },
    });
    closers.push(() => client.close());
    return client;
  }

  it('passes untouched by default', async () => {
    const client = await serve({});
    occupy('Sums.sum');
    expect(await firstValueFrom(client.send('sum', [1, 2]))).toBe(3);
    expect(counts('Sums.sum')).toEqual([1, 1, 0, 0, 0]);
  });

  it('is limited and released if its context is opted in', async () => {
    const client = await serve({
      contexts: ['rpc'],
      exception: (rejection: Rejection) => new RpcException(rejectionBody(rejection)),
    });
    expect(await firstValueFrom(client.send('sum', [1, 2]))).toBe(3);
    await expect(firstValueFrom(client.send('sum', []))).rejects.toMatchObject({
      message: 'nothing to add',
    });
    const free = occupy('Sums.sum');
    await expect(firstValueFrom(client.send('sum', [1]))).rejects.toMatchObject({
      code: 'ELIMIT',
      reason: 'concurrency',
    });
    free();
    expect(counts('Sums.sum')).toEqual([3, 0, 1, 2, 1]);
  });

  it('is an error if skip answers later, which would be taken for a no', async () => {
    const skip = (() => Promise.resolve(true)) as never;
    const client = await serve({ contexts: ['rpc'], skip });
    await expect(firstValueFrom(client.send('sum', [1]))).rejects.toBeDefined();
    expect(guards().guardOf('Sums.sum').snapshot()).toMatchObject({ admitted: 0 });
  });

  it('tells its guard, and that of the server, of each turn of the event loop once', async () => {
    const client = await serve({ contexts: ['rpc'], serverMaxConcurrency: 100 });
    const told = [guards().server, guards().guardOf('Sums.sum')].map((guard) =>
      jest.spyOn(guard, 'observeLoop'),
    );
    const both = jest.spyOn(guards(), 'observeLoop');
    await firstValueFrom(client.send('sum', [1, 2]));
    for (let i = 0; i < 500 && both.mock.calls.length < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const turns = both.mock.calls.length;
    expect(turns).toBeGreaterThan(0);
    expect(told.map((one) => one.mock.calls.length)).toEqual([turns, turns]);
  });

  it('is refused with the words and the status of its decorator', async () => {
    @Catch(ElimitException)
    class Tells implements RpcExceptionFilter<ElimitException> {
      catch(exception: ElimitException): Observable<never> {
        const { message } = exception.getResponse() as { message: string };
        return throwError(() => ({ status: exception.getStatus(), message }));
      }
    }
    @UseFilters(Tells)
    @Controller()
    class Worded {
      @MaxConcurrency(1, { statusCode: 429, message: 'mine' }) @MessagePattern('own') own() {}
      @MaxConcurrency(1) @MessagePattern('plain') plain() {}
    }
    const options = { contexts: ['rpc'], statusCode: 529, message: 'ours' };
    const client = await serve({ ...options, exception: () => undefined }, Worded);
    occupy('Worded.own');
    occupy('Worded.plain');
    const refusal = (pattern: string) =>
      firstValueFrom(client.send<unknown>(pattern, {})).catch((error: unknown) => error);
    expect(await refusal('own')).toEqual({ status: 429, message: 'mine' });
    expect(await refusal('plain')).toEqual({ status: 529, message: 'ours' });
  });

  it('holds the slot of a stream until it has completed', async () => {
    ticks = new Subject();
    const client = await serve({ contexts: ['rpc'] });
    const all = firstValueFrom(client.send<number>('ticks', {}).pipe(toArray()));
    while (!ticks.observed) await new Promise((resolve) => setTimeout(resolve, 2));
    ticks.next(1);
    expect(counts('Sums.ticks')).toEqual([1, 1, 0, 0, 0]);
    ticks.next(2);
    ticks.complete();
    expect(await all).toEqual([1, 2]);
    expect(counts('Sums.ticks')).toEqual([1, 0, 0, 1, 0]);
  });

  it('gives the slot of a stream back when what listens to it leaves', async () => {
    const client = await serve({});
    expect(await firstValueFrom(client.send('endless', {}))).toBe(1);
    const { inflight, outcomes } = guards().guardOf('Sums.endless').snapshot();
    expect([inflight, outcomes.abandoned]).toEqual([0, 1]);
  });
});

describe('a WebSocket gateway', () => {
  @WebSocketGateway({ path: '/plain' })
  class Plain {
    @MaxConcurrency(1) @SubscribeMessage('echo') echo(@MessageBody() data: unknown) {
      return { event: 'echo', data };
    }
  }
  @UseInterceptors(ElimitInterceptor)
  @WebSocketGateway({ path: '/limited' })
  class Limited {
    @MaxConcurrency(1) @SubscribeMessage('echo') echo(@MessageBody() data: unknown) {
      return { event: 'echo', data };
    }
  }

  async function serve(options: ElimitRootOptions, gateway: Type): Promise<void> {
    await create(moduleOf(options, { providers: [gateway] }));
    app?.useWebSocketAdapter(new WsAdapter(app));
    await app?.listen(0, '127.0.0.1');
  }

  async function ask(path: string, data: unknown): Promise<unknown> {
    const socket = new WebSocket(`ws://127.0.0.1:${portOf(app as INestApplication)}${path}`);
    closers.push(() => socket.terminate());
    return await new Promise((resolve, reject) => {
      socket.on('open', () => socket.send(JSON.stringify({ event: 'echo', data })));
      socket.on('message', (text: Buffer) => resolve(JSON.parse(String(text))));
      socket.on('error', reject);
    });
  }

  it('passes untouched by default', async () => {
    await serve({}, Plain);
    occupy('Plain.echo');
    expect(await ask('/plain', 1)).toEqual({ event: 'echo', data: 1 });
    expect(counts('Plain.echo')).toEqual([1, 1, 0, 0, 0]);
  });

  it('is limited, and nothing is warned of, if its context is opted in: Nest 12 gives gateways what is global', async () => {
    const warnings: string[] = [];
    const options: ElimitRootOptions = {
      contexts: ['ws'],
      exception: ({ reason }) => new WsException(reason),
      onEvent: (event) => {
        if (event.type === 'warning') warnings.push(event.message);
      },
    };
    await serve(options, Plain);
    occupy('Plain.echo');
    expect(await ask('/plain', 1)).toMatchObject({ event: 'exception' });
    expect(counts('Plain.echo')).toEqual([1, 1, 1, 0, 0]);
    expect(warnings).toEqual([]);
  });

  it('is limited and released by an interceptor that is bound to it', async () => {
    await serve({ exception: ({ reason }) => new WsException(reason) }, Limited);
    expect(await ask('/limited', 1)).toEqual({ event: 'echo', data: 1 });
    occupy('Limited.echo');
    expect(await ask('/limited', 2)).toMatchObject({
      event: 'exception',
      data: { message: 'concurrency' },
    });
    expect(counts('Limited.echo')).toEqual([2, 1, 1, 1, 0]);
  });
});

describe('GraphQL', () => {
  @Resolver()
  class Greeter {
    @MaxConcurrency(1) @Query(() => String) hello() {
      return 'hello';
    }
    @MaxConcurrency(1) @Query(() => String) fails(): string {
      throw new Error('thrown');
    }
  }

  /** The whole of a GraphQL server: Nest's schema and resolvers, behind one route. */
  class Driver extends AbstractGraphQLDriver {
    start({ schema }: GqlModuleOptions): Promise<void> {
      const { httpAdapter } = this.httpAdapterHost;
      httpAdapter.post('/graphql', async (req: { body: { query: string } }, res: unknown) => {
        const source = req.body.query;
        const contextValue = { req };
        const answer = await graphql({ schema: schema as GraphQLSchema, source, contextValue });
        httpAdapter.reply(res, answer, 200);
      });
      return Promise.resolve();
    }
    async stop(): Promise<void> {}
  }

  async function serve(options: ElimitRootOptions): Promise<void> {
    const module = GraphQLModule.forRoot({ driver: Driver, autoSchemaFile: true });
    await create(moduleOf(options, { providers: [Greeter], imports: [module] }));
    await app?.listen(0, '127.0.0.1');
  }

  const ask = async (query: string): Promise<unknown> => {
    const answer = await request(app?.getHttpServer() as Server)
      .post('/graphql')
      .send({ query });
    return answer.body as unknown;
  };

  it('passes untouched by default', async () => {
    await serve({});
    occupy('Greeter.hello');
    expect(await ask('{ hello }')).toEqual({ data: { hello: 'hello' } });
    expect(counts('Greeter.hello')).toEqual([1, 1, 0, 0, 0]);
  });

  it('is limited and released if its context is opted in', async () => {
    await serve({ contexts: ['graphql'] });
    expect(await ask('{ hello }')).toEqual({ data: { hello: 'hello' } });
    await ask('{ fails }');
    expect(counts('Greeter.fails')).toEqual([1, 0, 0, 0, 1]);
    const free = occupy('Greeter.hello');
    expect(JSON.stringify(await ask('{ hello }'))).toMatch(/Too many requests are being served/);
    free();
    expect(counts('Greeter.hello')).toEqual([2, 0, 1, 2, 0]);
  });
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
