import type { Server } from 'node:http';
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

const early = new WeakMap<object, Set<PropertyKey>>();
const late = new Set<PropertyKey>();

@Controller()
class KeysController {
  @Get('keys/:id')
  @UseGuards(limit('auto', { registry: false }))
  keys(@Req() req: object, @Res() res: { json(body: object): void }): void {
    for (const each of [req, res]) {
      const known = early.get(each);
      for (const key of Reflect.ownKeys(each)) if (known?.has(key) === false) late.add(key);
    }
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
    // between our listener and Express
    const listeners = server.listeners('request') as ((...args: object[]) => void)[];
    server.removeAllListeners('request');
    for (const listener of listeners.slice(0, -1)) server.on('request', listener);
    let seen = 0;
    server.on('request', (...each: object[]) => {
      seen++;
      for (const object of each) early.set(object, new Set(Reflect.ownKeys(object)));
    });
    server.on('request', listeners.at(-1) as (...args: object[]) => void);
    late.clear();
    await ask();
    expect(seen).toBe(1);
    // the body parsers' own, and a property that is an accessor in Express 5
    const others = new Set<PropertyKey>(['body', '_body', 'query']);
    expect([...late].filter((key) => !others.has(key))).toEqual([]);
  }, 30_000);
});
