import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import {
  createGuard,
  createGuards,
  createRegistry,
  type ElimitEvent,
  type GuardSnapshot,
} from '@elimit/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Express, Router } from 'express';
import request from 'supertest';
import { limit } from '../src/index.js';
import { EXPRESS } from './harness.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function listen(app: Express): Promise<string> {
  const server = createServer(app).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const ok = (_req: unknown, res: { send(text: string): unknown }): void => {
  res.send('ok');
};

describe.each(EXPRESS)('limit, express $version', ({ express }) => {
  it('keeps the types of a route’s parameters', async () => {
    const app = express();
    app.get('/items/:id', limit('auto', { registry: false }), (req, res) => {
      const id: string = req.params.id; // checked by the compiler
      res.send(id);
    });
    expect((await request(await listen(app)).get('/items/7')).text).toBe('7');
  });

  it('asks isFailure about Express’s own response', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    const app = express();
    app.use(limit(guard, { isFailure: (_req, res) => res.locals.failed === true }));
    app.get('/', (_req, res) => {
      res.locals.failed = true;
      res.send('no');
    });
    await request(await listen(app)).get('/');
    expect(guard.snapshot().outcomes).toMatchObject({ failure: 1 });
  });

  it('sends Retry-After for what a guard in a handler refuses, if nobody else answers', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    guard.tryAcquire();
    const app = express();
    app.set('env', 'test'); // else Express writes the error to stderr, too
    app.get('/', async (_req, _res, next) => {
      try {
        await guard.execute(() => 'not run');
      } catch (error) {
        next(error);
      }
    });
    const answer = await request(await listen(app)).get('/');
    expect(answer.status).toBe(503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  describe('names of createGuards', () => {
    type Mount = (app: Express, router: Router) => void;

    it.each<{ it: string; mount: Mount; paths: string[]; names: string[] }>([
      {
        it: 'a route of the app',
        mount: (app, router) => app.use(router),
        paths: ['/items/1', '/items/2'],
        names: ['GET /items/:id'],
      },
      {
        it: 'a route of a mounted router',
        mount: (app, router) => app.use('/api', router),
        paths: ['/api/items/1', '/api/items/2'],
        names: ['GET /api/items/:id'],
      },
      {
        it: 'a router mounted twice',
        mount: (app, router) => app.use('/v1', router).use('/v2', router),
        paths: ['/v1/items/1', '/v2/items/2'],
        names: ['GET /v1/items/:id', 'GET /v2/items/:id'],
      },
      {
        it: 'a router in a router',
        mount: (app, router) => app.use('/api', express.Router().use('/inner', router)),
        paths: ['/api/inner/items/1'],
        names: ['GET /api/inner/items/:id'],
      },
      {
        it: 'an app in an app',
        mount: (app, router) => app.use('/admin', express().use('/inner', router)),
        paths: ['/admin/inner/items/1'],
        names: ['GET /admin/inner/items/:id'],
      },
      {
        it: 'other spellings of the mount path: letters are as they were written in the code',
        mount: (app, router) => app.use('/Api', router),
        paths: ['/Api/items/1', '/API/items/1', '/api/items/1', '/aPi/items/1'],
        names: ['GET /Api/items/:id'],
      },
    ])('are taken from templates: $it', async ({ mount, paths, names }) => {
      const guards = createGuards({ registry: createRegistry() });
      const router = express.Router();
      router.get('/items/:id', limit(guards), ok);
      const app = express();
      mount(app, router);
      const url = await listen(app);
      for (const path of paths) await request(url).get(path).expect(200, 'ok');
      expect(guards.names()).toEqual(names);
    });

    it('count HEAD with the GET route that answers it', async () => {
      const guards = createGuards({ registry: createRegistry() });
      const app = express();
      app.get('/', limit(guards), ok);
      await request(await listen(app))
        .head('/')
        .expect(200);
      expect(guards.names()).toEqual(['GET /']);
    });

    it.each<{ it: string; mount: Mount }>([
      { it: 'a mount with a parameter', mount: (app, router) => app.use('/users/:user', router) },
      {
        it: 'an app mounted with a parameter',
        mount: (app, router) => app.use('/users/:user', express().use(router)),
      },
    ])('are never a piece of the URL: $it needs a name', async ({ mount }) => {
      const guards = createGuards({ registry: createRegistry() });
      const errors: unknown[] = [];
      const router = express.Router();
      router.get('/items/:id', limit(guards), ok);
      router.get('/named', limit(guards, { name: 'GET /users/:user/named' }), ok);
      const app = express();
      mount(app, router);
      app.use(
        (error: unknown, _req: unknown, res: { sendStatus(n: number): void }, _n: unknown) => {
          errors.push(error);
          res.sendStatus(500);
        },
      );
      const url = await listen(app);
      await request(url).get('/users/42/items/1').expect(500);
      await request(url).get('/users/42/named').expect(200);
      expect(guards.names()).toEqual(['GET /users/:user/named']);
      expect(String(errors[0])).toMatch(/^TypeError: limit\(guards\) .* it needs \{ name \}$/);
    });

    it('need to be given outside of a route', async () => {
      const guards = createGuards({ registry: createRegistry() });
      const app = express();
      app.use(limit(guards));
      app.use((error: unknown, _req: unknown, res: { send(text: string): void }, _n: unknown) => {
        res.send(String(error));
      });
      const { text } = await request(await listen(app)).get('/');
      expect(text).toMatch(/it needs \{ name \}$/);
    });
  });

  it('is called app unless it is named, on a route too', async () => {
    const registry = createRegistry();
    const app = express();
    app.get('/', limit(7, { registry }), limit('auto', { registry, name: 'named' }), ok);
    await request(await listen(app))
      .get('/')
      .expect(200);
    expect(registry.sources().map((source) => (source.snapshot() as GuardSnapshot).name)).toEqual([
      'app',
      'named',
    ]);
  });

  it('answers before a body parser behind it has read anything', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    const app = express();
    let parsed = 0;
    app.use(limit(guard));
    app.use(express.json(), (_req, _res, next) => {
      parsed++;
      next();
    });
    app.post('/', ok);
    const url = await listen(app);
    const entry = guard.tryAcquire();
    await request(url).post('/').send({ a: 1 }).expect(503);
    expect(parsed).toBe(0);
    if (entry.admitted) entry.release('success');
    await request(url).post('/').send({ a: 1 }).expect(200);
    expect(parsed).toBe(1);
  });

  it('warns once of a limit that is made for each request', async () => {
    const events: ElimitEvent[] = [];
    const app = express();
    const registry = createRegistry();
    const name = `made per request ${Math.random()}`;
    app.get(
      '/',
      (req, res, next) => {
        limit(5, { name, registry, onEvent: (event) => events.push(event) })(req, res, next);
      },
      ok,
    );
    const url = await listen(app);
    for (let i = 0; i < 8; i++) await request(url).get('/').expect(200);
    expect(events).toEqual([
      expect.objectContaining({ type: 'warning', code: 'WARN_LIMIT_PER_REQUEST', name }),
    ]);
  });

  it('runs under names in stack traces and in the router that say what it is', () => {
    expect(limit(1, { registry: false }).name).toBe('limitRequests');
  });
});
