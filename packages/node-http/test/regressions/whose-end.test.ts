import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server as NetServer } from 'node:net';
import { createGuard, createGuards, type Guard } from '@elimit/core';
import { eventually, RawClient, VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type LimitOptions, type LimitTarget, protect, RequestLimit } from '../../src/index.js';

const clearUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const clear of clearUp.splice(0).toReversed()) await clear();
});

type Handle = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

function limitOf(target: LimitTarget, options: LimitOptions = {}): Handle {
  const limit = new RequestLimit(target, options, {
    defaultName: 'test',
    methodNameOf: () => undefined,
  });
  return (req, res, next) => limit.handle(req, res, next);
}

async function listen(server: NetServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  clearUp.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function serve(handler: RequestListener): Promise<number> {
  const server = createServer(handler);
  const port = await listen(server);
  clearUp.push(() => server.closeAllConnections());
  return port;
}

async function ask(
  port: number,
  request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
): Promise<RawClient> {
  const client = await RawClient.open(port);
  clearUp.push(() => client.destroy());
  client.send(request);
  return client;
}

/** Nothing comes back by a hold time: time stands still. */
function guardOnVirtualTime(name = 'test'): {
  guard: Guard;
  clock: VirtualClock;
  options: LimitOptions;
} {
  const clock = new VirtualClock();
  const guard = createGuard({ limit: 5, name, clock, registry: false });
  guard.observeLoop = () => {}; // turns of the real loop mean nothing on virtual time
  return { guard, clock, options: { clock, timers: clock } };
}

describe('a connection that the handler destroys', () => {
  const POST = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi';
  it.each([
    ['after its headers', undefined],
    ['after it has read the body', POST],
  ])('%s is a failure of it, at once', async (_, request) => {
    const { guard, options } = guardOnVirtualTime();
    const limit = limitOf(guard, options);
    const port = await serve((req, res) =>
      limit(req, res, () => {
        req.resume();
        req.on('end', () => {
          res.writeHead(200);
          res.write('half');
          setImmediate(() => req.socket.destroy());
        });
      }),
    );
    await (await ask(port, request)).untilClosed();
    await eventually(() => guard.inflight === 0, 'the slot');
    expect(guard.snapshot().outcomes).toMatchObject({ failure: 1, abandoned: 0 });
  });

  it('is told from one that its client has left', async () => {
    const { guard, options } = guardOnVirtualTime();
    const limit = limitOf(guard, options);
    let gone = false;
    const port = await serve((req, res) =>
      limit(req, res, () => {
        res.writeHead(200);
        res.write('half');
        res.on('close', () => {
          gone = true;
        });
      }),
    );
    const client = await ask(port);
    await client.until(/half/);
    client.destroy();
    await eventually(() => gone, 'the server to see it');
    expect(guard.inflight).toBe(1); // the handler may be at work still
    expect(guard.snapshot().outcomes).toMatchObject({ failure: 0 });
  });

  it('is a failure of it on a server with a timeout, too', async () => {
    const guard = createGuard({ limit: 5, registry: false });
    const limit = limitOf(guard, { abandonedHoldMs: 60_000 });
    const server = createServer((req, res) => limit(req, res, () => req.socket.destroy()));
    server.timeout = 60_000;
    const port = await listen(server);
    await (await ask(port)).untilClosed();
    await eventually(() => guard.inflight === 0, 'the slot');
    expect(guard.snapshot().outcomes).toMatchObject({ failure: 1 });
  });

  describe('is told from one that ends otherwise, while the handler goes on:', () => {
    type End = (server: Server, client: RawClient, first: ServerResponse) => unknown;
    const TWO = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n';
    it.each<{ it: string; request?: string; timeoutMs?: number; failures?: number; end: End }>([
      { it: 'by the server’s timeout', timeoutMs: 50, end: () => {} },
      { it: 'by the server’s end', end: (server) => closeAll(server) },
      {
        it: 'by an answer before it in the pipeline that is destroyed',
        request: TWO,
        failures: 1, // that one's
        end: (_, __, first) => first.destroy(),
      },
      {
        it: 'by an answer before it in the pipeline that is the last',
        request: TWO,
        end: (_, __, first) => first.writeHead(200, { connection: 'close' }).end('bye'),
      },
      {
        it: 'by a bad chunk, for which a listener destroys the connection',
        request: 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
        end: (_, client) => client.send('ZZZ\r\n'),
      },
    ])('$it', async ({ request, timeoutMs = 0, failures = 0, end }) => {
      const guard = createGuard({ limit: 5, registry: false });
      const limit = limitOf(guard, { abandonedHoldMs: 60_000 });
      const responses: ServerResponse[] = [];
      const server = createServer((req, res) => limit(req, res, () => void responses.push(res)));
      server.on('clientError', (_error, socket) => socket.destroy());
      server.timeout = timeoutMs;
      const port = await listen(server);
      const client = await ask(port, request);
      const wanted = request === TWO ? 2 : 1;
      await eventually(() => responses.length === wanted, 'the handlers');
      end(server, client, responses[0] as ServerResponse);
      await client.untilClosed();
      await eventually(() => responses.every((res) => res.req.socket.destroyed), 'the end');
      await new Promise((resolve) => setImmediate(resolve));
      expect(guard.inflight).toBe(1);
      expect(guard.snapshot().outcomes).toMatchObject({ failure: failures });
    });
  });
});

function closeAll(server: Server): void {
  server.close();
  server.closeAllConnections();
}

describe('HTTP/2', () => {
  it('holds no body against its client that is there, though nobody has read it yet', async () => {
    const guard = createGuard({ limit: 8, registry: false }); // 4 bodies
    const limit = limitOf(guard);
    const held: (() => void)[] = [];
    const server = createHttp2Server((req, res) => {
      limit(req as never, res as never, () => {
        held.push(() => {
          req.resume();
          res.end('done');
        });
      });
    });
    const port = await listen(server);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    clearUp.push(() => session.destroy());
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) {
      const stream = session.request({ ':path': '/', ':method': 'POST' });
      stream.on('response', (headers) => statuses.push(headers[':status'] as number));
      stream.resume();
      stream.end('x');
    }
    await eventually(() => held.length + statuses.length === 6, 'all of them');
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve)); // time to refuse
    await eventually(() => {
      for (const go of held.splice(0)) go();
      return statuses.length === 6;
    }, 'the answers');
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
  });

  it('bounds uploads that announce no length, in number and in time', async () => {
    const { guard, clock, options } = guardOnVirtualTime();
    const limit = limitOf(guard, { ...options, maxBodies: 1, bodyHoldMs: 300 });
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    clearUp.push(() => process.off('warning', note));
    const server = createHttp2Server((req, res) => {
      limit(req as never, res as never, () => {
        req.on('error', () => {});
        req.resume();
      });
    });
    const port = await listen(server);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    session.on('error', () => {});
    clearUp.push(() => session.destroy());
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      const stream = session.request({ ':path': '/', ':method': 'POST' });
      stream.on('error', () => {});
      stream.on('response', (headers) => statuses.push(headers[':status'] as number));
      stream.write('x');
    }
    await eventually(() => statuses.length === 2, 'two refusals');
    expect(statuses).toEqual([503, 503]);
    await eventually(() => {
      clock.advance(100_000); // the reader's wait begins with an event of the real socket
      return statuses.length === 3;
    }, 'the one whose body does not come');
    expect(statuses).toEqual([503, 503, 408]);
    expect(guard.inflight).toBe(0);
    expect(warnings).toEqual([]); // HTTP/2 knows no Connection header
  });
});

describe('guards in a row', () => {
  it('an event stream that the inner one cuts off teaches the outer one nothing', async () => {
    const outer = guardOnVirtualTime('outer');
    const inner = guardOnVirtualTime('inner');
    const first = limitOf(outer.guard, outer.options);
    const second = limitOf(inner.guard, { ...inner.options, maxStreams: 0 });
    const port = await serve((req, res) =>
      first(req, res, () =>
        second(req, res, () => {
          res.setHeader('content-type', 'text/event-stream');
          res.flushHeaders();
        }),
      ),
    );
    const client = await ask(port);
    await client.until(/event-stream/);
    outer.clock.advance(1_000_000);
    inner.clock.advance(1_000_000);
    await client.untilClosed();
    expect(inner.guard.snapshot().rejected).toMatchObject({ concurrency: 1 });
    expect(outer.guard.inflight).toBe(0);
    expect(outer.guard.snapshot().outcomes).toMatchObject({ failure: 0, ignored: 1 });
  });

  it.each(['the set first', 'its member first'])('count a request once, %s', async (order) => {
    const guards = createGuards({ methods: { x: 1 }, registry: false });
    const set = limitOf(guards, { name: 'x' });
    const member = limitOf(guards.guardOf('x'));
    const [first, second] = order === 'the set first' ? [set, member] : [member, set];
    const port = await serve((req, res) =>
      first(req, res, () => second(req, res, () => void res.end('served'))),
    );
    await (await ask(port)).until(/served/);
    expect(guards.guardOf('x').snapshot()).toMatchObject({ admitted: 1 });
  });
});

describe('limit and protect', () => {
  it('say that skip must answer at once, instead of taking a promise for a no', async () => {
    const skip = (() => Promise.resolve(true)) as never;
    const limit = limitOf(5, { skip, registry: false });
    const port = await serve((req, res) =>
      limit(req, res, (error) => void res.end((error as Error).message)),
    );
    const client = await ask(port);
    await client.until(/got a promise/);
    expect(client.text).toMatch(/limit\.skip must answer true or false at once, got a promise/);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['limit(null)', () => limitOf(null as never), /max concurrency null is no limit/],
    ['limit(5, null)', () => limitOf(5, null as never), /limit must be an object, got null/],
    ['a clock', () => limitOf(5, { clock: 5 as never }), /limit\.clock must be an object, got 5/],
    [
      'timers',
      () => limitOf(5, { timers: {} as never }),
      /limit\.timers\.setTimeout must be a function, got undefined/,
    ],
    ['protect(null)', () => protect(null as never), /server must be an object, got null/],
    [
      'an app for a server',
      () => protect({} as never),
      /server\.emit must be a function, got undefined/,
    ],
    [
      'protect(server, null)',
      () => protect(createServer(), null as never),
      /limit must be an object, got null/,
    ],
  ])('refuse %s by name', (_, make, message) => {
    expect(make).toThrow(message);
    expect(make).toThrow(TypeError);
  });
});
