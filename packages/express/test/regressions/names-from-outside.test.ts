import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createGuards, createRegistry } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import type { ErrorRequestHandler, Express, RequestHandler, Router } from 'express';
import { limit } from '../../src/index.js';
import { EXPRESS } from '../harness.js';

const ok: RequestHandler = (_req, res) => void res.send('ok');
const quietly: ErrorRequestHandler = (error: Error, _req, res, _next) =>
  void res.status(500).send(error.message);

describe.each(EXPRESS)('express $version, a mount', ({ express }) => {
  it.each<{ it: string; mount: string | RegExp | (string | RegExp)[]; names: string[] }>([
    { it: 'written as an expression names nothing', mount: /^\/x\d+/, names: [] },
    { it: 'with an expression among texts', mount: ['/A', /^\/x\d+/], names: ['GET /A/y'] },
    {
      it: 'of several texts has one for each',
      mount: ['/A', '/b'],
      names: ['GET /A/y', 'GET /b/y'],
    },
    { it: 'of one text', mount: '/A', names: ['GET /A/y'] },
    { it: 'that ends in a slash', mount: '/b/', names: ['GET /b/y'] },
  ])('$it', async ({ mount, names }) => {
    const registry = createRegistry();
    const guards = createGuards({ registry });
    const app = express() as Express;
    app.set('env', 'test');
    const router = express.Router() as Router;
    router.get('/y', limit(guards), ok);
    app.use(mount, router);
    app.use(quietly);
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      for (const path of ['/A/y', '/a/y', '/b/y', '/B/y', '/x1/y', '/x2/y', '/X22/y']) {
        await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
      }
    } finally {
      server.close();
      server.closeAllConnections();
    }
    const made = [...registry.sources()].map((source) => source.snapshot().name);
    expect(made.filter((name) => name !== 'server')).toEqual(names);
  });
});
