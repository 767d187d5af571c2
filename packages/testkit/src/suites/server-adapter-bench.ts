import { strict as assert } from 'node:assert';
import { request as httpRequest, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createGuard, type Guard, type MaxConcurrency, type OutcomeCounts } from '@elimit/core';
import { VirtualClock } from '../virtual-clock.js';
import { eventually, RawClient } from './raw-client.js';
import type {
  ServerAdapterHarness,
  SuiteApp,
  SuiteHandler,
  SuiteLimitOptions,
  SuiteServer,
} from './server-adapter-harness.js';

/** An answer as a client got it. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What a case works with: a service behind one guard, on virtual time, and clients. */
export class Bench {
  readonly clock = new VirtualClock();
  readonly guard: Guard;
  readonly #harness: ServerAdapterHarness;
  readonly #clients: RawClient[] = [];
  #server: SuiteServer | undefined;

  constructor(harness: ServerAdapterHarness, limit: MaxConcurrency = 5) {
    this.#harness = harness;
    this.guard = createGuard({ limit, name: 'suite', clock: this.clock, registry: false });
    // turns of the real loop mean nothing on virtual time, and a busy machine would move the limit
    this.guard.observeLoop = () => {};
  }

  get port(): number {
    assert(this.#server !== undefined, 'the service was not started');
    return this.#server.port;
  }

  get server(): SuiteServer['server'] {
    assert(this.#server !== undefined, 'the service was not started');
    return this.#server.server;
  }

  async start(app: SuiteApp): Promise<void> {
    this.#server = await this.#harness.start(app);
  }

  /** Starts a service with one route, `/`, behind the guard. */
  serve(handler: SuiteHandler, options: SuiteLimitOptions = {}): Promise<void> {
    return this.start({ limits: [this.limit(options)], routes: { '/': handler } });
  }

  /** The guard as a limit, on the bench's own time. */
  limit(options: SuiteLimitOptions = {}): { target: Guard; options: SuiteLimitOptions } {
    return { target: this.guard, options: { clock: this.clock, timers: this.clock, ...options } };
  }

  async client(): Promise<RawClient> {
    const client = await RawClient.open(this.port);
    this.#clients.push(client);
    return client;
  }

  clients(count: number): Promise<RawClient[]> {
    return Promise.all(Array.from({ length: count }, () => this.client()));
  }

  get(
    path = '/',
    headers: Readonly<Record<string, string>> = {},
    method = 'GET',
    body?: string,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const req = httpRequest(
        { host: '127.0.0.1', port: this.port, path, method, headers, agent: false },
        (res) => {
          let text = '';
          res.setEncoding('utf8');
          res.on('data', (chunk: string) => {
            text += chunk;
          });
          res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }));
          res.on('error', reject);
        },
      );
      req.on('error', reject);
      req.end(body);
    });
  }

  /** Waits until this many calls are in flight. */
  inflight(count: number): Promise<void> {
    return eventually(
      () => this.guard.inflight === count,
      () => `${count} in flight, there are ${this.guard.inflight}`,
    );
  }

  /** All is over: nothing in flight, and calls ended so and not otherwise. */
  async ended(outcomes: Partial<OutcomeCounts>): Promise<void> {
    await this.inflight(0);
    assert.deepEqual(this.guard.snapshot().outcomes, {
      success: 0,
      failure: 0,
      ignored: 0,
      abandoned: 0,
      ...outcomes,
    });
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await this.#server?.close();
  }
}

/** Runs a case on a bench of its own, and clears up behind it. */
export async function onBench(
  harness: ServerAdapterHarness,
  limit: MaxConcurrency,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const bench = new Bench(harness, limit);
  try {
    await run(bench);
  } finally {
    await bench.close();
  }
}

/** Handlers that have started and wait to be told to answer. */
export class Held {
  readonly responses: ServerResponse[] = [];

  readonly handler: SuiteHandler = (_req, res) => {
    this.responses.push(res);
    return undefined;
  };

  /** Waits until this many handlers have started. */
  started(count: number): Promise<void> {
    return eventually(
      () => this.responses.length === count,
      () => `${count} handlers to start, ${this.responses.length} have`,
    );
  }

  /** Waits until the server has seen all these clients leave. */
  left(): Promise<void> {
    return eventually(
      () => this.responses.every((res) => res.destroyed),
      'the server to see its clients leave',
    );
  }

  answer(text = 'ok'): void {
    for (const res of this.responses.splice(0)) res.end(text);
  }
}
