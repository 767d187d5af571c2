import { once } from 'node:events';
import net from 'node:net';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Channel, createFetch, elimitInterceptor, type Fetch } from '@elimit/fetch';
import { eventually } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { Agent, type Dispatcher, request } from 'undici';
import { atEnd, openChannel, start } from '../../../client/test/support/opened.js';

interface Opened {
  readonly channel: Channel;
  readonly fetch: Fetch;
  readonly dispatcher: Dispatcher;
}

function open(nodes: readonly string[]): Opened {
  const channel = openChannel({ name: 'search', nodes });
  const agent = new Agent();
  atEnd(() => agent.destroy());
  return {
    channel,
    fetch: createFetch(channel),
    dispatcher: agent.compose(elimitInterceptor(channel)),
  };
}

const begun: Parameters<typeof start>[0] = (_request, response) => {
  response.writeHead(200).write('first');
};
const mine = new Error('mine');
/** Takes nothing, like a client that has hung up. */
const sink = () =>
  new Writable({
    write(_chunk, _encoding, done) {
      done(mine);
    },
  });

describe('a caller who wants no more of an answer costs the node nothing', () => {
  it.each<{ it: string; use: (opened: Opened) => Promise<unknown> }>([
    {
      it: 'body.cancel(error)',
      use: async ({ fetch }) => (await fetch('/')).body?.cancel(mine),
    },
    {
      it: 'a pipeline whose end fails',
      use: async ({ fetch }) =>
        pipeline(Readable.fromWeb((await fetch('/')).body as never), sink()),
    },
    {
      it: 'a signal with an Error of its own',
      use: async ({ fetch }) => {
        const control = new AbortController();
        const { body } = await fetch('/', { signal: control.signal });
        control.abort(mine);
        await body?.getReader().read();
      },
    },
    {
      it: 'AbortSignal.timeout',
      use: async ({ fetch }) => (await fetch('/', { signal: AbortSignal.timeout(50) })).text(),
    },
    {
      it: 'body.destroy(error) behind the interceptor',
      use: async ({ dispatcher }) => {
        const { body } = await request('http://search/', { dispatcher });
        body.on('error', () => {}).destroy(mine);
      },
    },
    {
      it: 'a signal behind the interceptor',
      use: async ({ dispatcher }) => {
        const control = new AbortController();
        const { signal } = control;
        const { body } = await request('http://search/', { dispatcher, signal });
        control.abort(mine);
        await body.text();
      },
    },
  ])('$it', async ({ use }) => {
    const node = await start(begun);
    const opened = open([node.url]);
    await use(opened).catch(() => {});
    await eventually(() => node.openConnections === 0, 'the connection closes');
    expect(opened.channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });
});

describe('an answer that breaks off costs the node a failure', () => {
  it.each<{ it: string; end: (opened: { reset: () => void; close: () => void }) => void }>([
    { it: 'by a reset', end: ({ reset }) => reset() },
    { it: 'by an early end', end: ({ close }) => close() },
  ])('$it', async ({ end }) => {
    const node = await start(({ socket }, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      const ways = { reset: () => socket.resetAndDestroy(), close: () => socket.end() };
      response.write('half', () => setTimeout(() => end(ways), 20));
    });
    const { fetch, channel } = open([node.url]);
    await expect((await fetch('/')).text()).rejects.toThrow('terminated');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });
});

const failing = () =>
  new ReadableStream<Uint8Array>({
    start: (control) => control.enqueue(Buffer.from('a')),
    pull: (control) => control.error(mine),
  });
const chunks = async function* () {
  yield Buffer.from('a');
  await new Promise(setImmediate);
  throw mine;
};

const withBody = { method: 'HEAD', body: 'x' };

describe('what the caller has done wrong costs the node nothing, and is not tried again', () => {
  it.each<{ it: string; call: (opened: Opened) => Promise<unknown> }>([
    { it: 'a header', call: ({ fetch }) => fetch('/', { headers: { x: 'a\nb' } }) },
    { it: 'a method', call: ({ fetch }) => fetch('/', { method: 'B AD' }) },
    { it: 'a HEAD with a body', call: ({ fetch }) => fetch('/', withBody) },
    {
      it: 'a Request that was used before',
      call: async ({ fetch, channel }) => {
        const used = new Request(channel.endpoints()[0]?.origin ?? '', {
          method: 'POST',
          body: 'x',
        });
        await used.text();
        return fetch(used);
      },
    },
    { it: 'a port that no fetch uses', call: ({ fetch }) => fetch('http://127.0.0.1:1/') },
    {
      it: 'a stream to send that fails',
      call: ({ fetch }) => fetch('/', { method: 'PUT', body: failing(), duplex: 'half' }),
    },
    {
      it: 'a generator to send that throws',
      call: ({ fetch }) => fetch('/', { method: 'PUT', body: chunks(), duplex: 'half' }),
    },
    {
      it: 'a header behind the interceptor',
      call: ({ dispatcher }) =>
        request('http://search/', { dispatcher, headers: { x: 'a\nb' }, method: 'GET' }),
    },
    {
      it: 'a stream to send behind the interceptor',
      call: ({ dispatcher }) =>
        request('http://search/', { dispatcher, method: 'PUT', body: Readable.from(chunks()) }),
    },
    {
      it: 'a generator to send behind the interceptor',
      call: ({ dispatcher }) =>
        request('http://search/', { dispatcher, method: 'PUT', body: chunks() as never }),
    },
  ])('$it', async ({ call }) => {
    const node = await start();
    const opened = open([node.url]);
    await expect(call(opened)).rejects.toBeInstanceOf(Error);
    const tried = opened.channel.endpoints().filter(({ calls }) => calls > 0);
    expect(tried).toMatchObject([{ calls: 1, failures: 0, inflight: 0 }]);
  });

  it('but a connection that breaks while a stream is sent is the node’s', async () => {
    const server = net.createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.resetAndDestroy());
    });
    atEnd(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as net.AddressInfo;
    const { dispatcher, channel } = open([`http://127.0.0.1:${port}`]);
    const body = new Readable({ read() {} });
    body.push('a');
    const call = request('http://search/', { dispatcher, method: 'PUT', body });
    await expect(call).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });
});
