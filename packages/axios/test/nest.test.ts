import 'reflect-metadata';
import { breaker, createChannel } from '@elimit/axios';
import { refuse, startTestServer } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import { firstValueFrom } from 'rxjs';

it('Nest’s HttpService calls through a channel: one provider, as docs/axios.md has it', async () => {
  const full = await startTestServer(refuse());
  const good = await startTestServer();
  const search = createChannel({
    name: 'search',
    nodes: [full.url, good.url],
    random: () => 0,
    timeoutMs: 5000,
  });

  // oxlint-disable-next-line typescript/no-extraneous-class -- what a Nest module is
  class SearchModule {}
  Module({
    providers: [
      {
        provide: HttpService,
        useFactory: () => new HttpService(breaker(axios.create(), search)),
      },
    ],
    exports: [HttpService],
  })(SearchModule);

  // oxlint-disable-next-line typescript/no-extraneous-class -- what a Nest module is
  class AppModule {}
  Module({ imports: [SearchModule] })(AppModule);

  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  try {
    const http = app.get(HttpService, { strict: false });
    const answer = await firstValueFrom(http.get<string>('/items'));
    expect(answer.data).toBe('ok');
    expect([full.seen.length, good.seen.length]).toEqual([1, 1]);
  } finally {
    await app.close();
    search.close();
    await Promise.all([full.stop(), good.stop()]);
  }
});
