import type { Server } from 'node:http';
import { KeyWatch } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  Get,
  type INestApplication,
  Module,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common';
import { limit } from '../src/index.js';
import { listen, portOf } from './harness.js';

let watch: KeyWatch | undefined;
let late: PropertyKey[] | undefined;

@Controller()
class KeysController {
  @Get('keys/:id')
  @UseGuards(limit('auto', { registry: false }))
  keys(@Req() req: object, @Res() res: { json(body: object): void }): void {
    late = watch?.lateKeysOf(req, res);
    res.json({});
  }
}

@Module({ controllers: [KeysController] })
class KeysModule {}

let app: INestApplication;
afterEach(async () => {
  (app.getHttpServer() as Server).closeAllConnections();
  await app.close();
});

describe('what Nest, Express below it and this package hang on requests', () => {
  it('is there before Express changes their prototypes, but for what asks for presence', async () => {
    app = await listen(KeysModule, 'express');
    await app.listen(0, '127.0.0.1');
    const server = app.getHttpServer() as Server;
    const ask = async () => {
      await (await fetch(`http://127.0.0.1:${portOf(app)}/keys/1?b=2`)).text();
    };
    for (let i = 0; i < 4; i++) await ask(); // the first shows the guard its server, a later one the router's own key
    watch = new KeyWatch(server);
    await ask();
    // the body parsers' own, and a property that is an accessor in Express 5
    const others = new Set<PropertyKey>(['body', '_body', 'query']);
    expect(late?.filter((key) => !others.has(key))).toEqual([]);
  }, 30_000);
});
