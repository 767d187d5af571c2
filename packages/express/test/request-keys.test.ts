import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as nodeHttp from '@elimit/node-http';
import { eventually, KeyWatch } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Express } from 'express';
import { limit, protect, rateLimit } from '../src/index.js';
import { EXPRESS } from './harness.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

describe.each(EXPRESS)('express $version', ({ version, express }) => {
  /** What a request and its response got from the framework and from us, after their prototypes were changed. */
  async function addedLate(
    arrange: (app: Express, server: Server) => void,
    headers: Record<string, string> = {},
  ): Promise<PropertyKey[] | undefined> {
    const app = express();
    const server = createServer(app);
    servers.push(server);
    let watch: KeyWatch | undefined;
    let late: PropertyKey[] | undefined;
    // Node, too, adds to a request: after its answer, what is left of the body is read
    app.use((req, res, next) => {
      res.on('close', () => {
        late = watch?.lateKeysOf(req, res);
      });
      next();
    });
    arrange(app, server);
    const router = express.Router();
    router.get('/:id', (_req, res) => void res.json({}));
    app.use('/a', router);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const ask = async () =>
      await (await fetch(`http://127.0.0.1:${port}/a/1?b=2`, { headers })).text();
    for (let i = 0; i < 3; i++) await ask(); // the first shows the limit its server, the next the router's own key
    watch = new KeyWatch(server);
    await ask();
    await eventually(() => late !== undefined, 'the end of the last request');
    return late;
  }

  // Express 5 has an accessor for it, which a property given early would hide
  const rest = version === '4' ? ['query'] : [];

  it.each([
    // first: those below give Express's keys on every server from then on
    {
      by: 'protect of node-http, which finds Express at the server,',
      arrange: (_: Express, server: Server) => void nodeHttp.protect(server, { registry: false }),
    },
    { by: 'limit', arrange: (app: Express) => void app.use(limit('auto', { registry: false })) },
    {
      by: 'rateLimit',
      arrange: (app: Express) => void app.use(rateLimit({ rate: 9, registry: false })),
    },
    {
      by: 'protect',
      arrange: (_: Express, server: Server) => void protect(server, { registry: false }),
    },
  ])(
    'has nothing to add to a request that $by has seen',
    async ({ arrange }) => {
      expect(await addedLate(arrange)).toEqual(rest);
    },
    30_000,
  );

  it('has nothing to add to a request that limit refuses', async () => {
    const arrange = (app: Express) => void app.use(limit('auto', { registry: false }));
    const late = await addedLate(arrange, { 'x-request-timeout-ms': '0' });
    expect(late).toEqual(rest);
  }, 30_000);

  it('adds nothing to a request that protect refuses ahead of Express', async () => {
    const server = createServer(express());
    servers.push(server);
    let keys: PropertyKey[] = [];
    protect(server, {
      limit: 1,
      registry: false,
      handler: (req, res) => {
        keys = [...Reflect.ownKeys(req), ...Reflect.ownKeys(res)];
        res.writeHead(503).end();
      },
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const tooLate = { headers: { 'x-request-timeout-ms': '0' } };
    for (let i = 0; i < 3; i++) {
      await (await fetch(`http://127.0.0.1:${port}/`, tooLate)).text();
    }
    expect(keys).not.toHaveLength(0);
    expect(keys).not.toContain('baseUrl');
    expect(keys).not.toContain('locals');
  }, 30_000);

  it('gives no value that Express does not give itself', async () => {
    const app = express();
    const server = createServer(app);
    servers.push(server);
    app.use(limit('auto', { registry: false }));
    let seen: unknown;
    app.get('/x', (req, res) => {
      seen = [
        req.baseUrl,
        req.originalUrl,
        req.params,
        res.locals,
        res.statusCode,
        res.statusMessage,
      ];
      res.json({});
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (let i = 0; i < 2; i++) await (await fetch(`http://127.0.0.1:${port}/x?y=1`)).text();
    expect(seen).toEqual(['', '/x?y=1', {}, {}, 200, undefined]);
  }, 30_000);
});
