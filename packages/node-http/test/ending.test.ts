import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createGuard, type Guard } from '@elimit/core';
import { eventually, RawClient, VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type LimitOptions, RequestLimit, signalOf } from '../src/index.js';

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

const clearUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const clear of clearUp.splice(0).toReversed()) await clear();
});

function limited(guard: Guard, options: LimitOptions, handler: Handler): Handler {
  const limit = new RequestLimit(guard, options, {
    defaultName: 'test',
    methodNameOf: () => undefined,
  });
  return (req, res) => limit.handle(req, res, () => handler(req, res));
}

async function listen(
  server: Pick<Server, 'listen' | 'address' | 'once' | 'close'>,
): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as Server, 'listening');
  clearUp.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function serve(handler: Handler): Promise<{ server: Server; port: number }> {
  const server = createServer(handler);
  const port = await listen(server);
  clearUp.push(() => server.closeAllConnections());
  return { server, port };
}

async function open(port: number): Promise<RawClient> {
  const client = await RawClient.open(port);
  clearUp.push(() => client.destroy());
  return client;
}

function guardOnVirtualTime(): { guard: Guard; clock: VirtualClock; options: LimitOptions } {
  const clock = new VirtualClock();
  const guard = createGuard({ limit: 5, name: 'test', clock, registry: false });
  guard.observeLoop = () => {}; // turns of the real loop mean nothing on virtual time
  return { guard, clock, options: { clock, timers: clock } };
}

describe('a slot comes back', () => {
  it('for an upgrade that a handler answers itself, as it starts', async () => {
    const { guard, clock, options } = guardOnVirtualTime();
    const { port } = await serve(
      limited(guard, options, (_req, res) => {
        res.writeHead(101, { connection: 'upgrade', upgrade: 'test' });
        res.flushHeaders();
      }),
    );
    const client = await open(port);
    client.request('GET /', 'Connection: Upgrade', 'Upgrade: test');
    await client.until(/101/);
    expect(guard.inflight).toBe(1);
    clock.advanceMs(50);
    expect(guard.snapshot()).toMatchObject({ inflight: 0, outcomes: { ignored: 1 } });
  });

  it('when it is met only after the answer has ended', async () => {
    const { guard, options } = guardOnVirtualTime();
    const late = limited(guard, options, () => {});
    const { port } = await serve((req, res) => {
      res.end('ok');
      late(req, res);
    });
    const client = await open(port);
    client.request('GET /');
    await client.until(/ok/);
    expect(guard.snapshot()).toMatchObject({ inflight: 0, admitted: 1, outcomes: { success: 1 } });
  });

  it('when it is met only after the client has left, once the handler ends', async () => {
    const { guard, options } = guardOnVirtualTime();
    const responses: ServerResponse[] = [];
    const late = limited(guard, options, (_req, res) => responses.push(res));
    const { port } = await serve((req, res) => {
      res.once('close', () => late(req, res));
    });
    const client = await open(port);
    client.request('GET /');
    setTimeout(() => client.destroy(), 10);
    await eventually(
      () => guard.snapshot().admitted === 1,
      () => 'the call to begin',
    );
    // the dispatch queue starts no handler for a client that has left
    await eventually(
      () => responses.length === 1 || guard.inflight === 0,
      () => 'the call to start or to be dropped',
    );
    for (const res of responses) res.end('ok');
    expect(guard.snapshot()).toMatchObject({ inflight: 0, outcomes: { abandoned: 1 } });
  });

  it('under a middleware that has put its own end in place, before or after', async () => {
    const { guard, options } = guardOnVirtualTime();
    const inner = limited(guard, options, (_req, res) => {
      wrapEnd(res);
      res.end('ok');
    });
    let wrapped = 0;
    function wrapEnd(res: ServerResponse): void {
      const end = res.end.bind(res) as (text: string) => ServerResponse;
      res.end = ((text: string) => {
        wrapped++;
        return end(text);
      }) as ServerResponse['end'];
    }
    const { port } = await serve((req, res) => {
      wrapEnd(res);
      inner(req, res);
    });
    const client = await open(port);
    client.request('GET /').request('GET /');
    await client.until(/ok[\s\S]*ok/);
    expect(wrapped).toBe(4);
    expect(guard.snapshot()).toMatchObject({ inflight: 0, outcomes: { success: 2 } });
  });

  it('on HTTP/2', async () => {
    const { guard, options } = guardOnVirtualTime();
    const handler = limited(guard, options, (_req, res) => {
      if (guard.inflight < 3) res.end('ok');
    });
    const server = createHttp2Server(handler as never);
    const port = await listen(server as unknown as Server);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    clearUp.push(() => session.destroy());
    const stream = session.request({ ':path': '/' });
    stream.resume();
    await once(stream, 'end');
    await eventually(
      () => guard.inflight === 0,
      () => 'the call to end',
    );
    expect(guard.snapshot()).toMatchObject({ admitted: 1, outcomes: { success: 1 } });
  });

  it('with no listener left on the connection, however many requests it carries', async () => {
    const { guard, options } = guardOnVirtualTime();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', onWarning);
    clearUp.push(() => process.off('warning', onWarning));
    const counts: number[] = [];
    const { port } = await serve(
      limited(guard, options, (req, res) => {
        signalOf(req);
        counts.push(
          req.socket.eventNames().reduce((n, name) => n + req.socket.listenerCount(name), 0),
        );
        res.end(`${counts.length}.`);
      }),
    );
    const client = await open(port);
    for (let i = 1; i <= 50; i++) {
      client.request('GET /');
      await client.until(new RegExp(`\\b${i}\\.$`));
    }
    expect(new Set(counts).size).toBe(1);
    expect(warnings).toEqual([]);
  });

  it('with no timer left', async () => {
    const { guard, clock, options } = guardOnVirtualTime();
    const { port } = await serve(limited(guard, options, (_req, res) => res.end('ok')));
    const client = await open(port);
    client.request('GET /');
    await client.until(/ok/);
    expect(clock.pendingTimers).toBeLessThanOrEqual(1);
    clock.advanceMs(50);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a handler of refusals', () => {
  it.each<{
    it: string;
    refuse: NonNullable<LimitOptions['handler']>;
    outcome: object;
    text: RegExp;
  }>([
    {
      it: 'that answers teaches the outer guard nothing',
      refuse: (_req, res) => setTimeout(() => res.writeHead(503).end('later'), 5),
      outcome: { success: 0, failure: 0, ignored: 1 },
      text: /later/,
    },
    {
      it: 'that goes on is as if nothing had been',
      refuse: (_req, _res, _rejection, next) => setTimeout(next, 5),
      outcome: { success: 1, failure: 0, ignored: 0 },
      text: /served/,
    },
  ])('$it', async ({ refuse, outcome, text }) => {
    const outer = guardOnVirtualTime();
    const full = guardOnVirtualTime();
    const innermost = guardOnVirtualTime();
    while (full.guard.tryAcquire().admitted);
    const handler = limited(innermost.guard, innermost.options, (_req, res) => res.end('served'));
    const refused = limited(full.guard, { ...full.options, handler: refuse }, handler);
    const { port } = await serve(limited(outer.guard, outer.options, refused));
    const client = await open(port);
    client.request('GET /');
    await client.until(text);
    expect(outer.guard.snapshot()).toMatchObject({ inflight: 0, outcomes: outcome });
  });
});

describe("a user's function that throws", () => {
  const boom = (): never => {
    throw new Error('boom');
  };

  it('isFailure: the answer goes out, as a failure', async () => {
    const { guard, options } = guardOnVirtualTime();
    const handler = limited(guard, { ...options, isFailure: boom }, (_req, res) => res.end('ok'));
    const { port } = await serve(handler);
    const client = await open(port);
    client.request('GET /');
    await client.until(/ok/);
    expect(guard.snapshot()).toMatchObject({ inflight: 0, outcomes: { failure: 1 } });
  });

  it.each<{ it: string; handler: NonNullable<LimitOptions['handler']> }>([
    { it: 'at once', handler: boom },
    { it: 'later', handler: () => Promise.reject(new Error('boom')) },
  ])("handler, $it: the error is the framework's to answer", async ({ handler }) => {
    const { guard, options } = guardOnVirtualTime();
    while (guard.tryAcquire().admitted);
    const limit = new RequestLimit(
      guard,
      { ...options, handler },
      {
        defaultName: 'test',
        methodNameOf: () => undefined,
      },
    );
    const { port } = await serve((req, res) => {
      limit.handle(req, res, (error) => res.end(String(error)));
    });
    const client = await open(port);
    client.request('GET /');
    await client.until(/Error: boom/);
    expect(guard.inflight).toBe(5);
  });
});

describe('signalOf', () => {
  it('is one signal per request, without a limit too', async () => {
    const signals: AbortSignal[] = [];
    const { port } = await serve((req, res) => {
      signals.push(signalOf(req, res), signalOf(req));
    });
    const client = await open(port);
    client.request('GET /');
    await eventually(
      () => signals.length === 2,
      () => 'the request',
    );
    expect(signals[0]).toBe(signals[1]);
    expect(signals[0]?.aborted).toBe(false);
    client.destroy();
    await eventually(
      () => signals[0]?.aborted === true,
      () => 'the signal to abort',
    );
    expect(signals[0]?.reason).toMatchObject({ name: 'AbortError', code: 'ERR_CLIENT_GONE' });
  });

  it('has aborted already if it is asked for too late', async () => {
    let signal: AbortSignal | undefined;
    const { port } = await serve((req, res) => {
      res.once('close', () => {
        signal = signalOf(req, res);
      });
    });
    const client = await open(port);
    client.request('GET /');
    setTimeout(() => client.destroy(), 10);
    await eventually(
      () => signal !== undefined,
      () => 'the client to leave',
    );
    expect(signal?.aborted).toBe(true);
  });

  it('stays quiet for a client that left with its answer', async () => {
    let signal: AbortSignal | undefined;
    const { port } = await serve((req, res) => {
      signal = signalOf(req, res);
      res.end('ok');
    });
    const client = await open(port);
    client.request('GET /', 'Connection: close');
    await client.untilClosed();
    expect(signal?.aborted).toBe(false);
  });
});
