import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { breaker, type Channel } from '@elimit/axios';
import { eventually } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import axios, {
  type AxiosAdapter,
  AxiosError,
  type AxiosInstance,
  type CreateAxiosDefaults,
} from 'axios';
import { openChannel, start, startHasty } from '../../../client/test/support/opened.js';

interface Opened {
  readonly client: AxiosInstance;
  readonly channel: Channel;
}

function open(url: string, defaults?: CreateAxiosDefaults): Opened {
  const channel = openChannel({ nodes: [url] });
  return { client: breaker(axios.create(defaults), channel), channel };
}

const mine = new Error('mine');

/** As axios 1.7 tells of an answer that breaks off. */
const asOfOld: AxiosAdapter = async (config) => {
  try {
    return await axios.getAdapter('http')(config);
  } catch (error) {
    const { code, request } = error as { code: string; request: unknown };
    const message = `maxContentLength size of ${config.maxContentLength} exceeded`;
    throw new AxiosError(message, code, config, request);
  }
};

it.each([
  { it: 'a failure', maxContentLength: -1, failures: 1 },
  { it: 'nothing where it may be above the caller’s own bound', maxContentLength: 9, failures: 0 },
])('an answer that breaks off costs $it, as older axios tells it', async (row) => {
  const node = await start(({ socket }, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('half', () => setTimeout(() => socket.end(), 20));
  });
  const { maxContentLength, failures } = row;
  const { client, channel } = open(node.url, { adapter: asOfOld, maxContentLength });
  await expect(client.post('/')).rejects.toMatchObject({
    code: failures === 0 ? 'ERR_BAD_RESPONSE' : 'ECONNRESET',
  });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures });
});

describe('an answer that cannot be decoded costs the node a failure', () => {
  it.each([
    { encoding: 'gzip', end: true },
    { encoding: 'gzip', end: false },
    { encoding: 'deflate', end: true },
    { encoding: 'br', end: true },
  ])('as a stream: $encoding, ended: $end', async ({ encoding, end }) => {
    const node = await start((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      response.write('\u001fno such thing, at all');
      if (end) response.end();
    });
    const { client, channel } = open(node.url);
    const { data } = await client.get<Readable>('/', { responseType: 'stream' });
    data.on('error', () => {}).resume();
    await eventually(() => data.closed, 'it ends');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });
});

it('a stream to send that fails after the headers of the answer costs the node nothing', async () => {
  const { client, channel } = open(await startHasty());
  const body = new Readable({ read() {} });
  body.push('a');
  const { data } = await client.put<Readable>('/', body, { responseType: 'stream' });
  data.on('error', () => {}).resume();
  body.destroy(mine);
  await eventually(() => data.closed, 'it ends');
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  expect(body.listeners('error')).toEqual([]);
});

it('a stream to send that is destroyed already is refused at once', async () => {
  const node = await start();
  const { client, channel } = open(node.url);
  const call = client.put('/', new Readable().destroy());
  await expect(call).rejects.toMatchObject({ message: 'the stream to send is destroyed' });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
});

it('a time that ends while the stream has nothing to send costs the node nothing', async () => {
  const node = await start();
  const { client, channel } = open(node.url);
  const body = new Readable({ read() {} });
  body.push('a');
  await expect(client.put('/', body, { timeout: 300 })).rejects.toMatchObject({
    code: 'ERR_TIMEOUT',
  });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
});

it('but one that ends after the whole stream does', async () => {
  const node = await start(() => {});
  const { client, channel } = open(node.url);
  const call = client.put('/', Readable.from(['hello']), { timeout: 1500 });
  await expect(call).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, inflight: 0 });
});

const adapter = 'fetch';
const nothing = { calls: 1, failures: 0, inflight: 0 };
const begun = (pull: (control: ReadableStreamDefaultController) => void | Promise<void>) =>
  new ReadableStream({ start: (control) => control.enqueue(Buffer.from('a')), pull });

describe('through axios’s fetch adapter, a stream of the web to send', () => {
  it('arrives whole', async () => {
    const node = await start();
    const { client, channel } = open(node.url, { adapter });
    await client.put('/', new Blob(['hello']).stream());
    expect(node.seen.map(({ body }) => body)).toEqual(['hello']);
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });

  it('that fails costs the node nothing', async () => {
    const node = await start();
    const { client, channel } = open(node.url, { adapter });
    const body = begun((control) => control.error(mine));
    await expect(client.put('/', body)).rejects.toBeInstanceOf(AxiosError);
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });

  it('that was read before costs the node nothing', async () => {
    const node = await start();
    const { client, channel } = open(node.url, { adapter });
    const body = new Blob(['hello']).stream();
    for await (const _ of body);
    await expect(client.put('/', body)).rejects.toBeInstanceOf(AxiosError);
    expect(node.seen).toEqual([]);
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });

  it('that has nothing to send when the time ends costs the node nothing', async () => {
    const node = await start();
    const { client, channel } = open(node.url, { adapter });
    const call = client.put(
      '/',
      begun(() => {}),
      { timeout: 300 },
    );
    await expect(call).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });
});

describe('through axios’s fetch adapter, an answer', () => {
  type Ending = (response: ServerResponse) => void;
  /** A node that ends a bit after the first half of its answer has come. */
  const half = (headers: OutgoingHttpHeaders, end: Ending) =>
    start((_request, response) => {
      response.writeHead(200, headers);
      response.write('half', () => setTimeout(() => end(response), 20));
    });
  const sized = { 'content-length': '8' };
  const cut: Ending = ({ socket }) => socket?.end();
  const reset: Ending = ({ socket }) => socket?.resetAndDestroy();

  const asStream = async ({ client }: Opened): Promise<string> => {
    const { data } = await client.get<ReadableStream>('/', { responseType: 'stream' });
    return text(data);
  };
  const asText = async ({ client }: Opened): Promise<string> =>
    (await client.post<string>('/')).data;

  it.each<{ it: string; headers: OutgoingHttpHeaders; end: Ending; read: typeof asText }>([
    { it: 'a stream, too short', headers: sized, end: cut, read: asStream },
    { it: 'a stream in chunks', headers: {}, end: cut, read: asStream },
    { it: 'a stream that is reset', headers: sized, end: reset, read: asStream },
    { it: 'a text', headers: sized, end: cut, read: asText },
  ])('that breaks off costs the node a failure: $it', async ({ headers, end, read }) => {
    const node = await half(headers, end);
    const opened = open(node.url, { adapter });
    await expect(read(opened)).rejects.toThrow('terminated');
    expect(opened.channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, inflight: 0 });
  });

  it('that comes whole is read as it was sent', async () => {
    const node = await half(sized, (response) => response.end('half'));
    const opened = open(node.url, { adapter });
    expect(await asStream(opened)).toBe('halfhalf');
    expect(opened.channel.endpoints()[0]).toMatchObject(nothing);
  });

  it.each<{ it: string; leave: (data: ReadableStream, caller: AbortController) => unknown }>([
    {
      it: 'cancels while the next chunk is waited for',
      leave: async (data) => {
        const reader = data.getReader();
        await reader.read();
        const next = reader.read();
        await new Promise(setImmediate);
        await reader.cancel(mine);
        expect(await next).toEqual({ done: true, value: undefined });
      },
    },
    {
      it: 'leaves a loop',
      leave: async (data) => {
        for await (const _ of data) break;
      },
    },
    {
      it: 'destroys a stream of Node’s around it, with an error',
      leave: async (data) => {
        const readable = Readable.fromWeb(data as never);
        readable.on('error', () => {}).once('data', () => readable.destroy(mine));
        await eventually(() => readable.closed, 'it ends');
      },
    },
    {
      it: 'aborts the signal of the call',
      leave: async (data, caller) => {
        const reader = data.getReader();
        await reader.read();
        caller.abort();
        await expect(reader.read()).rejects.toMatchObject({ code: 'ERR_CANCELED' });
      },
    },
  ])('whose reader $it costs the node nothing, and lets go of its connection', async (row) => {
    let isLeft = false;
    const node = await start((_request, response) => {
      response.once('close', () => {
        isLeft = true;
      });
      response.writeHead(200, sized).write('half');
    });
    const { client, channel } = open(node.url, { adapter });
    const caller = new AbortController();
    const { signal } = caller;
    const { data } = await client.get<ReadableStream>('/', { responseType: 'stream', signal });
    await row.leave(data, caller);
    await eventually(() => isLeft, 'the node sees its client leave');
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });

  it('that is larger than the caller’s own bound costs the node nothing', async () => {
    const node = await half({}, (response) => response.end('half'));
    const opened = open(node.url, { adapter, maxContentLength: 6 });
    await expect(asStream(opened)).rejects.toMatchObject({ code: 'ERR_BAD_RESPONSE' });
    expect(opened.channel.endpoints()[0]).toMatchObject(nothing);
  });

  it.each<{ it: string; made: () => { body: unknown; fail: () => void } }>([
    {
      it: 'of the web',
      made: () => {
        let control: ReadableStreamDefaultController | undefined;
        const body = begun((given) => {
          control = given;
          return new Promise(() => {});
        });
        return { body, fail: () => control?.error(mine) };
      },
    },
    {
      it: 'of Node’s',
      made: () => {
        const body = new Readable({ read() {} });
        body.push('a');
        return { body, fail: () => body.destroy(mine) };
      },
    },
  ])('that ends by a failing upload $it costs the node nothing', async ({ made }) => {
    const { client, channel } = open(await startHasty(), { adapter });
    const { body, fail } = made();
    const { data } = await client.put<ReadableStream>('/', body, { responseType: 'stream' });
    const reader = data.getReader();
    await reader.read();
    fail();
    await expect(reader.read()).rejects.toThrow('terminated');
    expect(channel.endpoints()[0]).toMatchObject(nothing);
  });
});
