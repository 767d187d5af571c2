import { Readable } from 'node:stream';
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
  const call = client.put('/', new Readable().destroy(), { timeout: 1000 });
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
  const call = client.put('/', Readable.from(['hello']), { timeout: 300 });
  await expect(call).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, inflight: 0 });
});

describe('through axios’s fetch adapter, a stream of the web to send', () => {
  const adapter = 'fetch';
  const begun = (pull: (control: ReadableStreamDefaultController) => void) =>
    new ReadableStream({ start: (control) => control.enqueue(Buffer.from('a')), pull });
  const nothing = { calls: 1, failures: 0, inflight: 0 };

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
