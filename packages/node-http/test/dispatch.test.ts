import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type DispatchPriority, dispatchSnapshot, loopMonitor } from '../src/index.js';
import {
  burn,
  type DispatchServer,
  type DispatchServerOptions,
  dispatchedSince,
  type Handler,
  ok,
  RawClient,
  serve,
  until,
} from './dispatch-server.js';

jest.setTimeout(60_000); // real sockets on a busy machine

/** More than the budget, also on a machine that gives this process a slice of 60 ms now and then. */
const BUSY_MS = 20;

let open: { close(): Promise<void> }[] = [];
const agent = new Agent({ keepAlive: true, maxSockets: 200 });

async function start(handler: Handler, options?: DispatchServerOptions): Promise<DispatchServer> {
  const server = await serve(handler, options);
  open.push(server);
  return server;
}

async function get(port: number, path: string): Promise<{ status: number; body: string }> {
  const req = request({ port, path, agent, host: '127.0.0.1' }).end();
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  return { status: res.statusCode ?? 0, body: await text(res) };
}

/** Connections that are set up, so that what they write arrives in one turn. */
async function clients(port: number, count: number): Promise<RawClient[]> {
  return Promise.all(Array.from({ length: count }, () => RawClient.to(port)));
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

afterEach(async () => {
  agent.destroy();
  for (const each of open) await each.close();
  open = [];
});

/**
 * Holds the queue: the first handler to start runs `meanwhile`, burns its budget, and the others wait.
 * All of them are seen in one turn; where a busy machine delivers some later, it is done once more.
 */
async function behindOne(
  count: number,
  meanwhile: (all: RawClient[]) => void,
  options?: DispatchServerOptions,
  onRequest: (req: IncomingMessage, res: ServerResponse) => void = () => undefined,
) {
  for (let attempt = 1; ; attempt++) {
    const ran: string[] = [];
    const seen: number[] = [];
    const all: RawClient[] = [];
    const server = await start((req, res) => {
      ran.push(req.url ?? '');
      if (ran.length === 1) {
        meanwhile(all);
        burn(BUSY_MS);
      }
      res.end();
    }, options);
    server.server.prependListener('request', (req, res) => {
      seen.push(loopMonitor().turns);
      onRequest(req, res);
    });
    all.push(...(await clients(server.port, count + 1)));
    const before = dispatchSnapshot();
    for (const [i, client] of all.entries()) client.get(`/${i}`);
    await until(() => seen.length === count + 1);
    if (new Set(seen).size === 1 || attempt === 20) return { server, ran, all, before };
    for (const { socket } of all) socket.destroy();
    await server.close();
    open = open.filter((each) => each !== server);
  }
}

describe('async context', () => {
  it('is the request’s own in its handler, for thousands of requests, most of them queued', async () => {
    const store = new AsyncLocalStorage<{ id: string }>();
    const wrong: string[] = [];
    const check = (req: IncomingMessage): void => {
      if (store.getStore()?.id !== req.url) wrong.push(`${req.url} saw ${store.getStore()?.id}`);
    };
    const { port, guard } = await start(
      async (req, res) => {
        check(req);
        await Promise.resolve();
        check(req);
        process.nextTick(() => {
          check(req);
          res.end(store.getStore()?.id);
        });
      },
      { around: (req, admit) => store.run({ id: req.url ?? '' }, admit) },
    );
    const before = dispatchSnapshot();
    const ids = Array.from({ length: 3_000 }, (_, i) => `/${i}`);
    const answers = await Promise.all(ids.map((id) => get(port, id)));
    expect(wrong).toEqual([]);
    expect(answers.map(({ body }) => body)).toEqual(ids);
    const { queued, started, atOnce } = dispatchedSince(before);
    expect(queued + atOnce).toBe(3_000);
    expect(started).toBe(queued);
    expect(queued).toBeGreaterThanOrEqual(1_500);
    expect(guard.inflight).toBe(0);
  });
});

describe('the next handler starts', () => {
  it.each<{ it: string; work: (done: () => void) => unknown; turns: number }>([
    {
      it: 'in another turn after one that burnt more than the budget at once',
      work: (done) => {
        burn(BUSY_MS);
        done();
      },
      turns: 4,
    },
    {
      it: 'in another turn after one that awaits first',
      work: async (done) => {
        await Promise.resolve();
        burn(BUSY_MS);
        done();
      },
      turns: 4,
    },
    {
      it: 'in another turn after one that awaits an async function that awaits',
      work: async (done) => {
        await (async () => Promise.resolve())();
        burn(BUSY_MS);
        done();
      },
      turns: 4,
    },
    {
      it: 'in another turn after one that works in a tick',
      work: (done) => {
        process.nextTick(() => {
          burn(BUSY_MS);
          done();
        });
      },
      turns: 4,
    },
  ])('$it', async ({ work, turns }) => {
    const seen = new Set<number>();
    const { port } = await start((_req, res) => {
      void work(() => {
        seen.add(loopMonitor().turns);
        res.end();
      });
    });
    const before = dispatchSnapshot();
    const all = await clients(port, 8);
    for (const client of all) client.get('/');
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(seen.size).toBeGreaterThanOrEqual(turns); // two fit into one where the machine has stood still
    expect(dispatchedSince(before).queued).toBeGreaterThanOrEqual(7);
    for (const { socket } of all) socket.destroy();
  });

  it('in another turn after one that waits for a body that is there already', async () => {
    const seen = new Set<number>();
    const { port } = await start((req, res) => {
      req.resume().on('end', () => {
        burn(BUSY_MS);
        seen.add(loopMonitor().turns);
        res.end();
      });
    });
    const all = await clients(port, 8);
    for (const { socket } of all) {
      socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello');
    }
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(seen.size).toBeGreaterThanOrEqual(4);
    for (const { socket } of all) socket.destroy();
  });

  it('in the same turn after quick ones', async () => {
    const seen: number[] = [];
    const { port } = await start((_req, res) => {
      seen.push(loopMonitor().turns);
      res.end();
    });
    const all = await clients(port, 50);
    const before = dispatchSnapshot();
    for (const client of all) client.get('/');
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(dispatchedSince(before).queued).toBeGreaterThanOrEqual(25);
    expect(new Set(seen).size).toBeLessThan(25);
    for (const { socket } of all) socket.destroy();
  });

  it('only after a connection that was made meanwhile has been seen and its request read', async () => {
    const order: string[] = [];
    let late: RawClient | undefined;
    const { port, server } = await start((req, res) => {
      order.push(`start ${req.url}`);
      if (req.url === '/0') {
        late = new RawClient(port);
        late.get('/late');
      }
      burn(BUSY_MS);
      res.end();
    });
    server.on('request', (req) => order.push(`seen ${req.url}`));
    const all = await clients(port, 3);
    for (const [i, client] of all.entries()) client.get(`/${i}`);
    await until(() => late?.statuses.length === 1);
    expect(order.join(', ')).toBe(
      'seen /0, seen /1, seen /2, start /0, seen /late, start /1, start /2, start /late',
    );
    for (const { socket } of [...all, late as RawClient]) socket.destroy();
  });

  it('after 64 turns at most, however many connections come', async () => {
    const { port } = await start((_req, res) => {
      burn(BUSY_MS);
      res.end();
    });
    const [client, flood] = (await clients(port, 2)) as [RawClient, RawClient];
    const monitor = loopMonitor();
    client.get('/');
    const before = dispatchSnapshot();
    // a connection in every turn
    for (let turn = 0; turn < 200 && client.statuses.length === 0; turn++) {
      monitor.connected();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    expect(client.statuses).toEqual([200]);
    const { spins } = dispatchedSince(before);
    expect(spins).toBeGreaterThanOrEqual(1);
    expect(spins).toBeLessThanOrEqual(64); // fewer where they take 25 ms
    client.socket.destroy();
    flood.socket.destroy();
  });
});

describe('a waiting request', () => {
  it('is skipped, and its place free, once its client has left', async () => {
    const { server, ran, before } = await behindOne(10, (all) => {
      for (const { socket } of all.slice(1)) socket.destroy();
    });
    await until(() => dispatchedSince(before).abandoned === 10);
    await until(() => server.guard.inflight === 0);
    expect(ran).toEqual(['/0']);
    expect(server.guard.snapshot().outcomes).toMatchObject({ success: 1, abandoned: 10 });
  });

  it('is refused once its deadline has passed', async () => {
    const { server, ran, all, before } = await behindOne(10, () => burn(30), {
      optionsOf: (req) => (req.url === '/0' || req.url === '/10' ? {} : { timeoutMs: BUSY_MS }),
    });
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(ran).toEqual(['/0', '/10']);
    expect(all.map(({ statuses }) => statuses[0])).toEqual([200, ...times(9, 503), 200]);
    expect(all[1]?.received).toContain('"reason":"deadline"');
    expect(dispatchedSince(before).overdue).toBe(9);
    const { inflight, rejected, outcomes } = server.guard.snapshot();
    expect({ inflight, ...outcomes }).toMatchObject({ inflight: 0, success: 2, abandoned: 0 });
    expect(rejected.deadline).toBe(9);
    for (const { socket } of all) socket.destroy();
  });

  it('is refused when it would be one more than may wait', async () => {
    const { server, ran, all } = await behindOne(10, () => undefined, {
      optionsOf: () => ({ maxQueued: 4 }),
    });
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(ran).toEqual(['/0', '/1', '/2', '/3']);
    expect(all.map(({ statuses }) => statuses[0])).toEqual([...times(4, 200), ...times(7, 503)]);
    expect(all[5]?.received).toContain('"reason":"queue"');
    expect(server.guard.snapshot()).toMatchObject({ inflight: 0, rejected: { queue: 7 } });
    for (const { socket } of all) socket.destroy();
  });

  const CLASSES: DispatchPriority[] = ['sheddable', 'default', 'critical'];
  const classOf = (req: IncomingMessage): DispatchPriority =>
    CLASSES[Number(req.url?.slice(1)) % 3] as DispatchPriority;

  it('starts after all of a higher class, and in order within its own', async () => {
    const { ran, all } = await behindOne(8, () => undefined, {
      optionsOf: (req) => ({ priority: classOf(req) }),
    });
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(ran).toEqual(['/2', '/5', '/8', '/1', '/4', '/7', '/0', '/3', '/6']);
    for (const { socket } of all) socket.destroy();
  });

  it('gives way, last come first, to a higher class when the queue is full', async () => {
    const { ran, all } = await behindOne(8, () => undefined, {
      optionsOf: (req) => ({ priority: classOf(req), maxQueued: 4 }),
    });
    // in: 0s 1d 2c 3s | 4d outs 3s, 5c outs 0s, 6s out, 7d out, 8c outs 4d
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(ran).toEqual(['/2', '/5', '/8', '/1']);
    for (const { socket } of all) socket.destroy();
  });

  it('is not started if somebody else has answered it', async () => {
    const held = new Map<string | undefined, ServerResponse>();
    const { ran, all } = await behindOne(
      2,
      () => {
        held.get('/1')?.writeHead(408).end();
      },
      undefined,
      (req, res) => held.set(req.url, res),
    );
    await until(() => all.every(({ statuses }) => statuses.length === 1));
    expect(ran).toEqual(['/0', '/2']);
    expect(all.map(({ statuses }) => statuses[0])).toEqual([200, 408, 200]);
    for (const { socket } of all) socket.destroy();
  });
});

describe('HTTP goes on as before:', () => {
  it('a body streams into a queued handler, byte for byte', async () => {
    const { port } = await start((req, res) => {
      const hash = createHash('sha256');
      req.on('data', (chunk: Buffer) => hash.update(chunk));
      req.on('end', () => res.end(hash.digest('hex')));
    });
    const before = dispatchSnapshot();
    const bodies = Array.from({ length: 20 }, (_, i) => Buffer.alloc(300_000, `${i}.`));
    const answers = await Promise.all(
      bodies.map(async (body) => {
        const req = request({ port, method: 'POST', agent, host: '127.0.0.1' });
        for (let at = 0; at < body.length; at += 50_000) req.write(body.subarray(at, at + 50_000));
        req.end();
        const [res] = (await once(req, 'response')) as [IncomingMessage];
        return text(res);
      }),
    );
    expect(answers).toEqual(bodies.map((body) => createHash('sha256').update(body).digest('hex')));
    expect(dispatchedSince(before).queued).toBeGreaterThanOrEqual(10);
  });

  it('pipelined requests are answered in their order, over one connection', async () => {
    const { port, guard } = await start((req, res) => {
      burn(0.1);
      res.end(`<${req.url}>`);
    });
    const before = dispatchSnapshot();
    const client = await RawClient.to(port);
    const paths = Array.from({ length: 40 }, (_, i) => `/${i}`);
    client.socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    await until(() => client.statuses.length === 40);
    await until(() => client.received.endsWith('</39>'));
    expect([...client.received.matchAll(/<(.*?)>/g)].map((match) => match[1])).toEqual(paths);
    expect(dispatchedSince(before).queued).toBeGreaterThanOrEqual(39);
    expect(guard.inflight).toBe(0);
    client.socket.destroy();
  });

  it('a connection is kept alive from request to request', async () => {
    const { port, server } = await start(ok);
    let connections = 0;
    server.on('connection', () => connections++);
    const client = await RawClient.to(port);
    for (let i = 1; i <= 30; i++) {
      client.get('/');
      await until(() => client.statuses.length === i);
    }
    expect(connections).toBe(1);
    client.socket.destroy();
  });

  it('Node itself says 100 Continue', async () => {
    const { port } = await start((req, res) => void req.pipe(res));
    const req = request({ port, method: 'POST', headers: { expect: '100-continue' } });
    req.flushHeaders();
    await once(req, 'continue');
    req.end('body');
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    expect(await text(res)).toBe('body');
  });

  it('an upgrade passes by', async () => {
    const { port, server, guard } = await start(ok);
    server.on('upgrade', (_req, socket) =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\nhi'),
    );
    const client = await RawClient.to(port);
    client.get('/', 'connection: upgrade\r\nupgrade: websocket\r\n');
    await once(client.socket, 'end');
    expect(client.received).toContain('hi');
    expect(guard.snapshot().admitted).toBe(0);
  });

  it('`dispatch: false` starts every handler in its own event', async () => {
    const { port } = await start(ok, { optionsOf: () => ({ dispatch: false }) });
    const before = dispatchSnapshot();
    await Promise.all(Array.from({ length: 100 }, (_, i) => get(port, `/${i}`)));
    expect(dispatchedSince(before)).toMatchObject({ atOnce: 0, queued: 0 });
  });
});
