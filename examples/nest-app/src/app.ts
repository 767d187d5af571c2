import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Breaker,
  ElimitModule,
  type Guards,
  HangUp,
  InjectGuards,
  MaxConcurrency,
  RateLimit,
  SkipLimit,
} from '@elimit/nest';
import { Controller, Get, Inject, Injectable, Module, Param, Query } from '@nestjs/common';

/** Calls something that may be broken. */
@Injectable()
export class Catalog {
  /** While it fails, it is not called for a while, and what was known last is served. */
  @Breaker({ fallback: () => ({ price: null }) })
  async priceOf(id: string): Promise<{ price: number | null }> {
    await sleep(20);
    if (id === 'broken') throw new Error('the catalog is down');
    return { price: id.length };
  }
}

/** Each handler has a guard of its own; this is the value of those that name none. */
@MaxConcurrency('auto')
@Controller()
export class Shop {
  readonly #guards: Guards;
  readonly #catalog: Catalog;

  // tokens are named, since this example runs without a compiler that writes down types
  constructor(@InjectGuards() guards: Guards, @Inject(Catalog) catalog: Catalog) {
    this.#guards = guards;
    this.#catalog = catalog;
  }

  @SkipLimit()
  @Get('healthz')
  healthz(): string {
    return 'well';
  }

  @SkipLimit()
  @Get('limits')
  limits(): unknown {
    const all = this.#guards.names().map((name) => this.#guards.guardOf(name));
    return [this.#guards.server, ...all].map((guard) => guard.snapshot());
  }

  @MaxConcurrency({ timeoutMs: 300, maxConcurrency: 100 })
  @Get('search')
  async search(@Query('q') q?: string): Promise<object> {
    await sleep(20);
    return { found: q ?? null };
  }

  /** Burns the processor: the limit learns that it has only one. */
  @Get('thumbnail/:id')
  thumbnail(@Param('id') id: string): object {
    for (const until = performance.now() + 5; performance.now() < until; );
    return { id };
  }

  /** Slow, and stops when nobody waits for it any more. */
  @MaxConcurrency(2)
  @Get('report')
  async report(@HangUp() signal: AbortSignal): Promise<object> {
    await sleep(2000, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    return { rows: 1000 };
  }

  @Get('price/:id')
  price(@Param('id') id: string): Promise<object> {
    return this.#catalog.priceOf(id);
  }

  @RateLimit({ limit: 3, ttl: 6000 })
  @Get('mail')
  mail(): object {
    return { sent: true };
  }
}

@Module({
  imports: [ElimitModule.forRoot({ serverMaxConcurrency: 500 })],
  controllers: [Shop],
  providers: [Catalog],
})
export class AppModule {}
