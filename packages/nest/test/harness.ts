import 'reflect-metadata';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  ServerAdapterHarness,
  SuiteApp,
  SuiteHandler,
  SuiteLimit,
  SuiteServer,
} from '@elimit/testkit';
import {
  All,
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  type INestApplication,
  Module,
  Req,
  Res,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ElimitException, limit, type NestGuardOptions, signalOf } from '../src/index.js';

export type Platform = 'express' | 'fastify';
export const PLATFORMS: readonly Platform[] = ['express', 'fastify'];

/** Makes an application. `proxies` is what Express calls `trust proxy`, and Fastify `trustProxy`. */
export async function listen(
  module: Type,
  platform: Platform,
  proxies: string | boolean = false,
): Promise<INestApplication> {
  const adapter = platform === 'express' ? new ExpressAdapter() : fastify(proxies);
  const app = await NestFactory.create(module, adapter as ExpressAdapter, {
    logger: false,
    abortOnError: false,
  });
  if (platform === 'express') (adapter as ExpressAdapter).set('trust proxy', proxies);
  return app;
}

export function portOf(app: INestApplication): number {
  return ((app.getHttpServer() as Server).address() as AddressInfo).port;
}

/** Fastify refuses bodies of types it has no parser for: here they reach their handlers as they come. */
function fastify(trustProxy: string | boolean): FastifyAdapter {
  const adapter = new FastifyAdapter({ forceCloseConnections: true, trustProxy });
  const instance = adapter.getInstance();
  instance.addContentTypeParser('*', (_request: unknown, payload: unknown, done: Done) =>
    done(null, payload),
  );
  return adapter;
}
type Done = (error: null, body: unknown) => void;

/** Nest, for the suite that all server adapters share. */
export function nestHarness(platform: Platform): ServerAdapterHarness {
  return {
    name: `nest on ${platform}`,
    rejection: 'answered',
    methodName: (path) => `SuiteController.${methodOf(path)}`,
    signalOf,
    start: (suite) => start(suite, platform),
  };
}

async function start(suite: SuiteApp, platform: Platform): Promise<SuiteServer> {
  // one guard for each limit of the suite, wherever it is bound
  const made = new Map<SuiteLimit, CanActivate>();
  const guardOf = (one: SuiteLimit): CanActivate => {
    let guard = made.get(one);
    if (guard === undefined) {
      guard = limit(one.target, optionsOf(one));
      made.set(one, guard);
    }
    return guard;
  };
  const controller = controllerOf(suite, guardOf);
  @Module({ controllers: [controller] })
  class SuiteModule {}
  const app = await listen(SuiteModule, platform);
  const { around } = suite;
  if (around !== undefined) {
    app.use((req: IncomingMessage, _res: unknown, next: () => void) => around(req, next));
  }
  app.useGlobalGuards(...(suite.limits ?? []).map(guardOf));
  const refuseWith = suite.limits?.find((one) => one.refuseWith !== undefined)?.refuseWith;
  if (refuseWith !== undefined) app.useGlobalFilters(filterOf(refuseWith));
  await app.listen(0, '127.0.0.1');
  const server = app.getHttpServer() as Server;
  return {
    server,
    port: portOf(app),
    close: async () => {
      server.closeAllConnections();
      await app.close();
    },
  };
}

function optionsOf({ options = {} }: SuiteLimit): NestGuardOptions {
  const { skip, priority, ...alike } = options;
  const requestOf = (context: ExecutionContext): IncomingMessage => {
    const req = context.switchToHttp().getRequest<Wrapped<IncomingMessage>>();
    return req.raw ?? req;
  };
  return {
    ...alike,
    ...(skip && { skip: (context) => skip(requestOf(context)) }),
    ...(priority && { priority: (context) => priority(requestOf(context)) }),
  };
}

function methodOf(path: string): string {
  return `at_${path.replaceAll(/\W/g, '_')}`;
}

function controllerOf(suite: SuiteApp, guardOf: (one: SuiteLimit) => CanActivate): Type {
  @Controller()
  class SuiteController {}
  const prototype = SuiteController.prototype as unknown as Record<string, unknown>;
  for (const [path, handler] of Object.entries(suite.routes)) {
    const key = methodOf(path);
    prototype[key] = routeHandler(handler);
    const descriptor = Object.getOwnPropertyDescriptor(prototype, key) as PropertyDescriptor;
    All(path)(prototype, key, descriptor);
    Req()(prototype, key, 0);
    Res({ passthrough: true })(prototype, key, 1);
    const own = suite.routeLimits?.[path];
    if (own !== undefined) UseGuards(guardOf(own))(prototype, key, descriptor);
  }
  return SuiteController;
}

/** A text is Nest's to send; a handler that answers by itself leaves Nest with nothing to do. */
function routeHandler(handler: SuiteHandler) {
  return async (req: Wrapped<IncomingMessage>, res: Wrapped<ServerResponse>): Promise<string> => {
    const text = await handler(req.raw ?? req, res.raw ?? res);
    return text ?? new Promise<string>(() => {});
  };
}
type Wrapped<T> = T & { raw?: T };

function filterOf(refuseWith: NonNullable<SuiteLimit['refuseWith']>): ExceptionFilter {
  @Catch(ElimitException)
  class RefusalFilter implements ExceptionFilter {
    catch(exception: ElimitException, host: ArgumentsHost): void {
      const { status, text } = refuseWith(exception.rejection);
      const res = host.switchToHttp().getResponse<{
        status(code: number): { send(text: string): void };
      }>();
      res.status(status).send(text);
    }
  }
  return new RefusalFilter();
}
