import { createServer, type Server, type ServerResponse } from 'node:http';
import { createGuard, type Guard, type MaxConcurrency } from '@elimit/core';
import { limit as expressLimit } from '@elimit/express';
import { limit as koaLimit } from '@elimit/koa';
import { limit as nestLimit } from '@elimit/nest';
import { protect } from '@elimit/node-http';
import underPressure from '@fastify/under-pressure';
import {
  type CanActivate,
  Controller,
  Get,
  Module,
  Req,
  Res,
  ServiceUnavailableException,
  UseGuards,
} from '@nestjs/common';
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
  'fixed-4': 'Express, limit(4)',
  'fixed-8': 'Express, limit(8)',
  'fixed-40': 'Express, limit(40)',
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
  refuser: 'node:http, which refuses everything',
  oracle:
    'Express behind the least that works: knows what the handlers can do, refuses as cheaply as Node can',
  'nest-refuser': 'Nest on Express, a guard that refuses everything',
  'nest-front': "Nest on Express, app.use(limit('auto')) of @elimit/express in front",
} as const;
export type Arm = keyof typeof ARMS;

/** The bare server that has the same framework. */
export function bareOf(arm: Arm): Arm {
  if (arm === 'fastify' || arm === 'under-pressure') return 'fastify';
  if (arm === 'koa' || arm === 'koa-auto') return 'koa';
  return arm.startsWith('nest') ? 'nest' : 'none';
}

/** The example in its README, without the bounds on memory. It has no defaults. */
const UNDER_PRESSURE = { maxEventLoopDelay: 1_000, maxEventLoopUtilization: 0.98 };
const BACKLOG = 4096;
const HOST = '127.0.0.1';

export interface StartedArm {
  readonly server: Server;
  readonly guard: Guard | undefined;
}

/** Starts a server with every workload that its framework serves here, its limit low, to warm up the code. */
export async function startArm(arm: Arm): Promise<StartedArm> {
  const limit = LIMITS[arm];
  const guard =
    limit === undefined ? undefined : createGuard({ limit: warmUpLimit(limit), name: arm });
  return { server: await serverOf(arm, guard), guard };
}

/**
 * Gives a guard the limit to be measured, with an engine that has learned nothing. The guard, and all around it, stays: a
 * second server would have hidden classes of its own for its requests, and code warmed up with those is thrown away.
 */
export function measureFromNow(arm: Arm, guard: Guard | undefined): void {
  guard?.configure({ limit: 'unlimited' }); // an engine of the same type would keep what it knows
  guard?.configure({ limit: LIMITS[arm] });
}

function serverOf(arm: Arm, guard: Guard | undefined): Server | Promise<Server> {
  const bare = bareOf(arm);
  if (arm === 'refuser') return startRefuser();
  if (arm === 'oracle') return startOracle();
  if (bare === 'fastify') return startFastify(arm !== bare);
  if (bare === 'koa') return startKoa(guard);
  if (bare !== 'nest') return startExpress(arm, guard);
  return startNest(nestGuardsOf(arm, guard), arm === 'nest-front' ? guard : undefined);
}

const FIXED = 20;
/** The limit of each arm that has one. */
const LIMITS: Partial<Record<Arm, 'auto' | 'timeout' | number>> = {
  auto: 'auto',
  timeout: 'timeout',
  fixed: FIXED,
  'fixed-4': 4,
  'fixed-8': 8,
  'fixed-40': 40,
  noDispatch: FIXED,
  protect: 'auto',
  'protect-fixed': FIXED,
  'koa-auto': 'auto',
  'nest-auto': 'auto',
  'nest-front': 'auto',
};

/** Low enough for the warm-up to be refused in part. */
const WARM_UP_LIMIT = 10;

function warmUpLimit(limit: 'auto' | 'timeout' | number): MaxConcurrency {
  return typeof limit === 'number' ? WARM_UP_LIMIT : { type: limit, maxConcurrency: WARM_UP_LIMIT };
}

function startExpress(arm: Arm, guard: Guard | undefined): Server {
  const app = express();
  if (arm === 'toobusy-js') app.use(toobusyGate);
  if (arm === 'overload-protection') app.use(overloadProtection('express'));
  if (guard !== undefined && !arm.startsWith('protect')) {
    app.use(expressLimit(guard, { dispatch: arm !== 'noDispatch' }));
  }
  routeTo(createHandlers(), app);
  const server = app.listen({ port: 0, host: HOST, backlog: BACKLOG });
  if (arm.startsWith('protect')) protect(server, { limit: guard });
  return server;
}

function routeTo(handlers: ReturnType<typeof createHandlers>, app: express.Application): void {
  for (const workload of WORKLOADS) {
    const { method, path } = requestFor(workload);
    if (method === 'POST') app.post(path, express.json(), handlers[workload]);
    else app.get(path, handlers[workload]);
  }
}

const toobusyGate: RequestHandler = function gate(_req, res, next) {
  if (toobusy()) res.status(503).send('Server Too Busy');
  else next();
};

const REFUSAL = Buffer.from('{"error":{"code":"ELIMIT"}}');
const REFUSAL_HEADERS = { 'content-type': 'application/json', 'content-length': REFUSAL.length };

/** As cheap as Node can. */
function refuse(res: ServerResponse): void {
  res.writeHead(503, REFUSAL_HEADERS).end(REFUSAL);
}

/** Says no to everybody: what is left for answers beside it bounds every limiter. */
function startRefuser(): Server {
  const server = createServer((_req, res) => refuse(res));
  return server.listen({ port: 0, host: HOST, backlog: BACKLOG });
}

/**
 * What a limiter that costs nothing, and need not find out what to admit, could reach on the same machine under the same load: so
 * many calls in flight, one handler started after each turn of the loop without a new connection. No features, no measurements, no
 * care for clients that leave.
 */
function startOracle(): Server {
  const app = express();
  routeTo(createHandlers(), app);
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  let connections = 0;
  let seen = 0;
  const turn = (): void => {
    if (connections === seen) waiting.shift()?.();
    seen = connections;
    if (waiting.length > 0) setImmediate(turn);
  };
  const server = createServer((req, res) => {
    if (inFlight >= FIXED) {
      refuse(res);
      return;
    }
    inFlight++;
    res.once('close', () => {
      inFlight--;
    });
    const start = (): void => {
      app(req, res);
    };
    if (waiting.push(start) === 1) setImmediate(turn);
  });
  server.on('connection', () => {
    connections++;
  });
  return server.listen({ port: 0, host: HOST, backlog: BACKLOG });
}

async function startFastify(guarded: boolean): Promise<Server> {
  const app = fastify();
  if (guarded) {
    await app.register(underPressure, UNDER_PRESSURE);
  }
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
  return app.server;
}

function startKoa(guard: Guard | undefined): Server {
  const app = new Koa();
  const handlers = createHandlers();
  if (guard !== undefined) app.use(koaLimit(guard));
  app.use(async (ctx) => {
    ctx.respond = false;
    ctx.res.statusCode = 200; // Koa begins with 404
    await handlers[ctx.path.slice(1) as Workload](ctx.req, ctx.res);
  });
  return app.listen({ port: 0, host: HOST, backlog: BACKLOG });
}

/** Nest's own way to say no, with nothing of ours in it. */
const REFUSES_ALL: CanActivate = {
  canActivate() {
    throw new ServiceUnavailableException();
  },
};

/** What stands at the handlers. */
function nestGuardsOf(arm: Arm, guard: Guard | undefined): CanActivate[] {
  if (arm === 'nest-refuser') return [REFUSES_ALL];
  return guard === undefined || arm === 'nest-front' ? [] : [nestLimit(guard)];
}

/**
 * Decorators are functions: called by hand, so that no compiler needs to know of them.
 *
 * @param guards - bound to the handlers
 * @param front - in front of Nest and its body parsers
 */
async function startNest(
  guards: readonly CanActivate[],
  front: Guard | undefined,
): Promise<Server> {
  const handlers = createHandlers();
  // oxlint-disable-next-line typescript/no-extraneous-class -- its methods are added below
  class Workloads {}
  for (const workload of WORKLOADS) {
    if (requestFor(workload).method !== 'GET') continue;
    const route: RequestHandler = (req, res) => handlers[workload](req, res);
    const method = { value: route, writable: true, configurable: true };
    Object.defineProperty(Workloads.prototype, workload, method);
    Get(workload)(Workloads.prototype, workload, method);
    Req()(Workloads.prototype, workload, 0);
    Res()(Workloads.prototype, workload, 1);
    if (guards.length > 0) UseGuards(...guards)(Workloads.prototype, workload, method);
  }
  Controller()(Workloads);
  // oxlint-disable-next-line typescript/no-extraneous-class -- what Nest calls a module
  class App {}
  Module({ controllers: [Workloads] })(App);
  const app = await NestFactory.create(App, { logger: false });
  if (front !== undefined) app.use(expressLimit(front));
  const server = app.getHttpServer() as Server;
  await app.init();
  return server.listen({ port: 0, host: HOST, backlog: BACKLOG });
}
