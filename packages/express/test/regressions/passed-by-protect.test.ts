import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { limit, protect } from '../../src/index.js';
import { EXPRESS } from '../harness.js';

// Express had begun with such a request when the limit behind gave it its properties, `params` among them, as undefined
it.each(EXPRESS)(
  'express $version: a request that protect has not asked about keeps its parameters behind a limit',
  async ({ express }) => {
    const app = express();
    app.post('/items/:id', limit('auto', { registry: false }), (req, res) => {
      res.json({ id: req.params.id });
    });
    const server = createServer(app);
    protect(server, { registry: false, skip: () => true });
    server.on('checkContinue', (req, res) => {
      res.writeContinue();
      app(req, res);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const asking = request({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/items/7',
      headers: { expect: '100-continue', 'content-length': 2 },
    });
    asking.on('continue', () => asking.end('{}'));
    asking.flushHeaders();
    try {
      const [answer] = (await once(asking, 'response')) as [IncomingMessage];
      expect(JSON.parse(await text(answer))).toEqual({ id: '7' });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
  30_000,
);
