import type { Server } from 'node:http';
import { createGuard, type Guard, type MaxConcurrency } from '@elimit/core';
import { limit as expressLimit } from '@elimit/express';
import { limit as koaLimit } from '@elimit/koa';
import { limit as nestLimit } from '@elimit/nest';
import { protect } from '@elimit/node-http';
import underPressure from '@fastify/under-pressure';
import { Controller, Get, Module, Req, Res, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import express, { type RequestHandler } from 'express';
import fastify from 'fastify';
import Koa from 'koa';
import overloadProtection from 'overload-protection';
import toobusy from 'toobusy-js';
import 'reflect-metadata';
import { createHandlers, requestFor, WORKLOADS, type Workload } from './handlers.js';

/** What stands in front of the handlers, and what framework they stand in. */
export const ARMS = {
  none: 'Express, bare',
  auto: "Express, limit('auto')",
  timeout: "Express, limit('timeout'): 500 ms, at most 100",
  fixed: 'Express, limit(20)',
  noDispatch: 'Express, limit(20, { dispatch: false })',
  protect: "Express, protect(server): 'auto' in front of the framework",
  'protect-fixed': 'Express, protect(server, { limit: 20 })',
  'toobusy-js': 'Express, toobusy-js, defaults',
  'overload-protection': 'Express, overload-protection, defaults',
  fastify: 'Fastify, bare',
  'under-pressure': 'Fastify, @fastify/under-pressure, as in its README',
  koa: 'Koa, bare',
  'koa-auto': "Koa, limit('auto')",
  nest: 'Nest on Express, bare',
  'nest-auto': "Nest on Express, UseGuards(limit('auto'))",
} as const;
export type Arm = keyof typeof ARMS;

/** The bare server that has the same framework. */
export function bareOf(arm: Arm): Arm {
  if (arm === 'fastify' || arm === 'under-pressure') return 'fastify';
  if (arm === 'koa' || arm === 'koa-auto') return 'koa';
  return arm === 'nest' || arm === 'nest-auto' ? 'nest' : 'none';
}

/** The example in its README, without the bounds on memory. It has no defaults. */
const UNDER_PRESSURE = { maxEventLoopDelay: 1_000, maxEventLoopUtilization: 0.98 };
const FIXED = 20;
const BACKLOG = 4096;
const HOST = '127.0.0.1';

export interface StartedArm {
  readonly server: Server;
  readonly guard: Guard | undefined;
}

/**
 * Starts a server with every workload that its framework serves here. Under `/warm` stands a second instance of
 * the same protection, so that code can be warmed up without teaching the first one anything.
 */
export async function startArm(arm: Arm): Promise<StartedArm> {
  const bare = bareOf(arm);
  if (bare === 'fastify') return startFastify(arm !== bare);
  if (bare === 'koa') return startKoa(arm !== bare);
  return bare === 'nest' ? startNest(arm !== bare) : startExpress(arm);
}

function guardFor(limit: MaxConcurrency, name = 'measured'): Guard {
  return createGuard({ limit, name, registry: name === 'measured' ? undefined : false });
}

function startExpress(arm: Arm): StartedArm {
  const app = express();
  const guard = guardOf(arm);
  app.use('/warm', protectionOf(arm, guardFor(2, 'warm')), (_req, res) => {
    res.end('ok');
  });
  if (guard !== undefined || PEERS.has(arm)) {
    if (!arm.startsWith('protect')) app.use(protectionOf(arm, guard));
  }
  const handlers = createHandlers();
  for (const workload of WORKLOADS) {
    const { method, path } = requestFor(workload);
    if (method === 'POST') app.post(path, express.json(), handlers[workload]);
    else app.get(path, handlers[workload]);
  }
  const server = app.listen({ port: 0, host: HOST, backlog: BACKLOG });
  if (arm.startsWith('protect')) {
    protect(server, { limit: guard, skip: (req) => req.url?.startsWith('/warm') === true });
  }
  return { server, guard };
}

const PEERS: ReadonlySet<Arm> = new Set(['toobusy-js', 'overload-protection']);

function guardOf(arm: Arm): Guard | undefined {
  if (arm === 'auto' || arm === 'timeout') return guardFor(arm);
  if (arm === 'protect') return guardFor('auto');
  return arm === 'fixed' || arm === 'noDispatch' || arm === 'protect-fixed'
    ? guardFor(FIXED)
    : undefined;
}

function protectionOf(arm: Arm, guard: Guard | undefined): RequestHandler {
  if (arm === 'toobusy-js') {
    return function gate(_req, res, next) {
      if (toobusy()) res.status(503).send('Server Too Busy');
      else next();
    };
  }
  if (arm === 'overload-protection') return overloadProtection('express');
  return guard === undefined
    ? (_req, _res, next) => next()
    : expressLimit(guard, { dispatch: arm !== 'noDispatch' });
}

async function startFastify(guarded: boolean): Promise<StartedArm> {
  const app = fastify();
  if (guarded) {
    await app.register(underPressure, UNDER_PRESSURE);
  }
  app.get('/warm', (_request, reply) => reply.send('ok'));
  const handlers = createHandlers();
  for (const workload of WORKLOADS) {
    const { method, path } = requestFor(workload);
    app.route({
      method,
      url: path,
      handler: (request, reply) => {
        reply.hijack();
        return handlers[workload](request.raw, reply.raw);
      },
    });
  }
  await app.listen({ port: 0, host: HOST, backlog: BACKLOG });
  return { server: app.server, guard: undefined };
}

function startKoa(guarded: boolean): StartedArm {
  const app = new Koa();
  const guard = guarded ? guardFor('auto') : undefined;
  const warm = koaLimit(guardFor(2, 'warm'));
  const measured = guard === undefined ? undefined : koaLimit(guard);
  const handlers = createHandlers();
  app.use(async (ctx, next) => {
    const protection = ctx.path === '/warm' && guarded ? warm : measured;
    if (protection === undefined || (ctx.path === '/warm' && !guarded)) await next();
    else await protection(ctx, next);
  });
  app.use(async (ctx) => {
    if (ctx.path === '/warm') {
      ctx.body = 'ok';
      return;
    }
    ctx.respond = false;
    ctx.res.statusCode = 200; // Koa begins with 404
    await handlers[ctx.path.slice(1) as Workload](ctx.req, ctx.res);
  });
  return { server: app.listen({ port: 0, host: HOST, backlog: BACKLOG }), guard };
}

/** Decorators are functions: called by hand, so that no compiler needs to know of them. */
async function startNest(guarded: boolean): Promise<StartedArm> {
  const guard = guarded ? guardFor('auto') : undefined;
  const handlers = createHandlers();
  // oxlint-disable-next-line typescript/no-extraneous-class -- its methods are added below
  class Workloads {}
  const routes: Record<string, RequestHandler> = Object.fromEntries(
    WORKLOADS.filter((workload) => requestFor(workload).method === 'GET').map((workload) => [
      workload,
      (req, res) => handlers[workload](req, res),
    ]),
  );
  routes.warm = (_req, res) => {
    res.end('ok');
  };
  for (const [name, route] of Object.entries(routes)) {
    const method = { value: route, writable: true, configurable: true };
    Object.defineProperty(Workloads.prototype, name, method);
    Get(name)(Workloads.prototype, name, method);
    Req()(Workloads.prototype, name, 0);
    Res()(Workloads.prototype, name, 1);
    const own = name === 'warm' ? guardFor(2, 'warm') : guard;
    if (guarded && own !== undefined) {
      UseGuards(nestLimit(own))(Workloads.prototype, name, method);
    }
  }
  Controller()(Workloads);
  // oxlint-disable-next-line typescript/no-extraneous-class -- what Nest calls a module
  class App {}
  Module({ controllers: [Workloads] })(App);
  const app = await NestFactory.create(App, { logger: false });
  const server = app.getHttpServer() as Server;
  await app.init();
  server.listen({ port: 0, host: HOST, backlog: BACKLOG });
  return { server, guard };
}
