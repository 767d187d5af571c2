import 'reflect-metadata';
import type { Server } from 'node:http';
import { expect, it, jest } from '@jest/globals';
import { Controller, Get, Module } from '@nestjs/common';
import request from 'supertest';
import { ElimitModule, MaxConcurrency } from '../src/index.js';
import { listen } from './harness.js';

it('reads the decorators of another copy of the package, injects into it, and knows its exceptions', async () => {
  jest.resetModules();
  const other = await import('../src/index.js');
  expect(other.MaxConcurrency).not.toBe(MaxConcurrency);

  @Controller()
  class Copied {
    constructor(@other.InjectGuard('Copied.get') readonly guard: import('@elimit/core').Guard) {}
    @other.MaxConcurrency(1) @Get() get() {
      return 'ok';
    }
  }
  @Module({ imports: [ElimitModule.forRoot({ registry: false })], controllers: [Copied] })
  class CopiesModule {}
  const app = await listen(CopiesModule, 'express');
  await app.init();
  const server = app.getHttpServer() as Server;
  const { guard } = app.get(Copied);
  const entry = guard.tryAcquire();
  await request(server).get('/').expect(503);
  if (entry.admitted) entry.release('success');
  await request(server).get('/').expect(200, 'ok');
  expect(other.ElimitGuard.is(app.get(Symbol.for('@elimit/nest/handler-limits')))).toBe(false);
  await app.close();
});
