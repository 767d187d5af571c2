import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Module, SetMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { of } from 'rxjs';
import { Breaker, breakerOf, CircuitBreaker, ElimitModule, InjectBreaker } from '../src/index.js';

describe('@Breaker', () => {
  @Injectable()
  class Catalog {
    calls = 0;
    constructor(@InjectBreaker('Catalog.load') readonly breaker: CircuitBreaker) {}

    @Breaker({ registry: false })
    @SetMetadata('mark', 'kept')
    async load(id: string, fails = false): Promise<string> {
      this.calls++;
      if (fails) throw new Error('down');
      return Promise.resolve(`item ${id}`);
    }

    @Breaker({ registry: false, fallback: (_error, id: string) => `cached ${id}` })
    async cached(_id: string): Promise<string> {
      return Promise.reject(new Error('down'));
    }

    @Breaker({ registry: false }) stream(): unknown {
      return of(1);
    }
  }

  async function catalog(): Promise<Catalog> {
    @Module({ imports: [ElimitModule.forRoot({ registry: false })], providers: [Catalog] })
    class BreakerModule {}
    const context = await NestFactory.createApplicationContext(BreakerModule, {
      logger: false,
      abortOnError: false,
    });
    return context.get(Catalog);
  }

  it('calls the method on its object, with its arguments, and keeps its metadata', async () => {
    const made = await catalog();
    expect(await made.load('7')).toBe('item 7');
    expect(made.calls).toBe(1);
    expect(Reflect.getMetadata('mark', Catalog.prototype.load)).toBe('kept');
    expect([Catalog.prototype.load.name, Catalog.prototype.load.length]).toEqual(['load', 1]);
  });

  it('is injectable by its name, and calls nothing while it is open', async () => {
    const made = await catalog();
    expect(made.breaker).toBe(breakerOf('Catalog.load'));
    expect(made.breaker).toBeInstanceOf(CircuitBreaker);
    made.breaker.forceOpen();
    await expect(made.load('7')).rejects.toMatchObject({ code: 'ERR_BREAKER_OPEN' });
    expect(made.calls).toBe(0);
    made.breaker.reset();
    await expect(made.load('7', true)).rejects.toThrow('down');
    expect(made.breaker.snapshot().outcomes.failure).toBe(1);
  });

  it('answers by its fallback, and refuses Observables', async () => {
    const made = await catalog();
    expect(await made.cached('7')).toBe('cached 7');
    await expect(made.stream()).rejects.toThrow(/^@Breaker on Catalog\.stream: an Observable/);
  });

  it('names the breakers there are, if one is asked for that is not', () => {
    expect(() => breakerOf('Catalog.laod')).toThrow(/no breaker is named .*Catalog\.load/);
  });
});
