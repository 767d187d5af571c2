import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type Channel, createFetch, elimitInterceptor, type Fetch } from '@elimit/fetch';
import { eventually } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { Agent, type Dispatcher, request } from 'undici';
import { atEnd, openChannel, start, startHasty } from '../../../client/test/support/opened.js';

interface Opened {
  readonly channel: Channel;
  readonly fetch: Fetch;
  readonly dispatcher: Dispatcher;
}

function open(url: string): Opened {
  const channel = openChannel({ name: 'search', nodes: [url] });
  const agent = new Agent();
  atEnd(() => agent.destroy());
  return {
    channel,
    fetch: createFetch(channel),
    dispatcher: agent.compose(elimitInterceptor(channel, { timeoutMs: 1500 })),
  };
}

const mine = new Error('mine');
const put = (body: unknown) => ({ method: 'PUT', body: body as string, duplex: 'half' }) as const;

describe('a body that was read before is refused, not sent as an empty one', () => {
  it.each<{ it: string; body: () => AsyncIterable<unknown> }>([
    { it: 'a ReadableStream', body: () => new Blob(['hello']).stream() },
    { it: 'a Readable', body: () => Readable.from(['hello']) },
  ])('$it', async ({ body }) => {
    const node = await start();
    const { fetch, channel } = open(node.url);
    const used = body();
    for await (const _ of used);
    await expect(fetch('/', put(used))).rejects.toThrow(TypeError);
    expect(node.seen).toEqual([]);
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });
});

it('a file that has changed since it was opened costs the node nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'elimit-'));
  atEnd(() => rm(folder, { recursive: true }));
  const path = join(folder, 'file');
  await writeFile(path, 'hello');
  const body = await openAsBlob(path);
  await writeFile(path, 'something longer');
  const node = await start();
  const { fetch, channel } = open(node.url);
  await expect(fetch('/', put(body))).rejects.toMatchObject({
    cause: { name: 'NotReadableError' },
  });
  expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
});

it('a stream is sent whole, and so is a generator', async () => {
  const node = await start();
  const { fetch } = open(node.url);
  await fetch('/', put(new Blob(['hello']).stream()));
  await fetch('/', put(Readable.from(['hel', 'lo'])));
  expect(node.seen.map(({ body }) => body)).toEqual(['hello', 'hello']);
});

const begun = (end: (control: ReadableStreamDefaultController) => void | Promise<void>) =>
  new ReadableStream({ start: (control) => control.enqueue(Buffer.from('a')), pull: end });
const later = (fail: () => void) => void setTimeout(fail, 100);
async function* failing() {
  yield Buffer.from('a');
  await new Promise((resolve) => setTimeout(resolve, 100));
  throw mine;
}

describe('an upload that fails after the headers of the answer costs the node nothing', () => {
  it.each<{ it: string; call: (opened: Opened) => Promise<unknown> }>([
    {
      it: 'a ReadableStream',
      call: async ({ fetch }) => {
        const body = begun((control) => later(() => control.error(mine)));
        return (await fetch('/', put(body))).text();
      },
    },
    {
      it: 'a Readable behind the interceptor',
      call: async ({ dispatcher }) => {
        const body = new Readable({ read() {} });
        body.push('a');
        later(() => body.destroy(mine));
        const answer = await request('http://search/', { dispatcher, method: 'PUT', body });
        return answer.body.text();
      },
    },
    {
      it: 'a generator behind the interceptor',
      call: async ({ dispatcher }) => {
        const options = { dispatcher, method: 'PUT', body: failing() as never } as const;
        return (await request('http://search/', options)).body.text();
      },
    },
  ])('$it', async ({ call }) => {
    const opened = open(await startHasty());
    await expect(call(opened)).rejects.toBeInstanceOf(Error);
    expect(opened.channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });
});

const never = () => new Promise<void>(() => {});
async function* stuck() {
  yield Buffer.from('a');
  await never();
}

describe('a time that ends while the body has nothing to send costs the node nothing', () => {
  it.each<{ it: string; call: (opened: Opened) => Promise<unknown> }>([
    {
      it: 'a ReadableStream',
      call: ({ fetch }) => fetch('/', { ...put(begun(never)), timeoutMs: 300 }),
    },
    {
      it: 'a ReadableStream that never begins',
      call: ({ fetch }) =>
        fetch('/', { ...put(new ReadableStream({ pull: never })), timeoutMs: 300 }),
    },
    { it: 'a generator', call: ({ fetch }) => fetch('/', { ...put(stuck()), timeoutMs: 300 }) },
    {
      it: 'a Readable behind the interceptor',
      call: ({ dispatcher }) => {
        const body = new Readable({ read() {} });
        body.push('a');
        return request('http://search/', { dispatcher, method: 'PUT', body });
      },
    },
  ])('$it', async ({ call }) => {
    const node = await start();
    const opened = open(node.url);
    await expect(call(opened)).rejects.toMatchObject({ message: expect.any(String) });
    expect(opened.channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });

  it('but one that ends after the whole body does', async () => {
    const node = await start(() => {});
    const { fetch, dispatcher, channel } = open(node.url);
    const body = () => Readable.from(['hello']);
    const late = { code: 'ERR_TIMEOUT' };
    await expect(fetch('/', { ...put(body()), timeoutMs: 1500 })).rejects.toMatchObject(late);
    const call = request('http://search/', { dispatcher, method: 'PUT', body: body() });
    await expect(call).rejects.toMatchObject(late);
    expect(channel.endpoints()[0]).toMatchObject({ calls: 2, failures: 2 });
  });
});

it('the interceptor leaves no listener of its own on a stream', async () => {
  const node = await start();
  const { dispatcher } = open(node.url);
  const plain = new Agent();
  atEnd(() => plain.destroy());
  const left: number[] = [];
  for (const [url, by] of [
    [node.url, plain],
    ['http://search/', dispatcher],
  ] as const) {
    const body = Readable.from(['hello']);
    await (await request(url, { dispatcher: by, method: 'PUT', body })).body.text();
    await eventually(() => body.destroyed, 'it has ended');
    left.push(body.listenerCount('error'));
  }
  expect(left[1]).toBe(left[0]);
});
