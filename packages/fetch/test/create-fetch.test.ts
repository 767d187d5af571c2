import { type Channel, type ChannelOptions, createFetch, type Fetch } from '@elimit/fetch';
import { closedPort, eventually, hang, refuse, status } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { FormData as UndiciFormData, Request as UndiciRequest } from 'undici';
import { openChannel, start } from '../../client/test/support/opened.js';

function open(options: ChannelOptions): { fetch: Fetch; channel: Channel } {
  const channel = openChannel(options);
  return { fetch: createFetch(channel), channel };
}

describe('what it is given', () => {
  it.each([
    { it: 'a path', input: () => '/x?a=1', url: '/x?a=1' },
    { it: 'a path without its slash', input: () => 'x', url: '/x' },
    { it: 'a query', input: () => '?a=1', url: '/?a=1' },
  ])('$it goes to a node', async ({ input, url }) => {
    const node = await start();
    await open({ nodes: [node.url] }).fetch(input());
    expect(node.seen[0]?.url).toBe(url);
  });

  it.each([
    { it: 'a URL', of: (url: string) => new URL('/x', url) },
    {
      it: 'a Request of Node',
      of: (url: string) =>
        new Request(`${url}/x`, { headers: { a: 'b' }, method: 'PUT', body: 'text' }),
    },
    {
      it: 'a Request of undici',
      of: (url: string) =>
        new UndiciRequest(`${url}/x`, {
          headers: { a: 'b' },
          method: 'PUT',
          body: 'text',
        }) as unknown as Request,
    },
  ])('$it goes where it says, guarded by its origin', async ({ of }) => {
    const node = await start();
    const other = await start();
    const { fetch, channel } = open({ nodes: [node.url] });
    const input = of(other.url);
    expect((await fetch(input)).status).toBe(200);
    expect(other.seen[0]?.url).toBe('/x');
    if (!(input instanceof URL)) {
      expect(other.seen[0]).toMatchObject({ method: 'PUT', body: 'text' });
      expect(other.seen[0]?.headers.a).toBe('b');
    }
    expect(node.seen).toHaveLength(0);
    expect(channel.endpoints()[1]).toMatchObject({ origin: other.url, calls: 1 });
  });

  it.each([
    { input: '//a.test/x', options: { nodes: ['http://127.0.0.1:1'] } },
    { input: '/x', options: { unlisted: true } },
    { input: 'ftp://a.test/x', options: { unlisted: true } },
  ])('$input is refused as a TypeError where it leads nowhere', async ({ input, options }) => {
    await expect(open(options).fetch(input)).rejects.toThrow(TypeError);
  });

  it.each([
    { it: 'Node’s', form: () => new FormData() },
    { it: 'undici’s', form: () => new UndiciFormData() as unknown as FormData },
  ])('a form of $it own class arrives, with its files', async ({ form }) => {
    const node = await start();
    const fields = form();
    fields.append('name', 'value');
    fields.append('file', new Blob(['content']), 'a.txt');
    await open({ nodes: [node.url] }).fetch('/', { method: 'POST', body: fields });
    expect(node.seen[0]?.body).toContain('filename="a.txt"');
    expect(node.seen[0]?.body).toContain('\r\n\r\ncontent\r\n');
  });
});

describe('an error', () => {
  it('is a TypeError with code, brpcCode, cause and the status for a server', async () => {
    const { fetch } = open({ nodes: [await closedPort()], breaker: { minIsolationMs: 3000 } });
    const refused = await fetch('/').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(TypeError);
    expect(refused).toMatchObject({
      code: 'ECONNREFUSED',
      status: 502,
      statusCode: 502,
      expose: false,
    });
    const out = await fetch('/').catch((error: unknown) => error);
    expect(out).toBeInstanceOf(TypeError);
    expect(out).toMatchObject({
      message: 'fetch failed',
      code: 'ERR_NO_ENDPOINT',
      brpcCode: 112,
      status: 502,
      cause: { name: 'NoEndpointError' },
    });
  });

  it('of the time is one with status 504', async () => {
    const node = await start(hang);
    const { fetch } = open({ nodes: [node.url] });
    await expect(fetch('/', { timeoutMs: 60 })).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
      status: 504,
    });
  });

  it('of the caller’s signal is its own reason', async () => {
    const node = await start(hang);
    const { fetch, channel } = open({ nodes: [node.url] });
    const control = new AbortController();
    const call = fetch('/', { signal: control.signal });
    await eventually(() => node.seen.length === 1, 'the request is there');
    control.abort('enough');
    await expect(call).rejects.toBe('enough');
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0, inflight: 0 });
  });
});

describe('a body', () => {
  it('that is under way is still the caller’s to cancel, at nobody’s charge', async () => {
    const node = await start((_request, response) => {
      response.writeHead(200).write('first');
    });
    const { fetch, channel } = open({ nodes: [node.url] });
    const control = new AbortController();
    const answer = await fetch('/', { signal: control.signal });
    const text = answer.text();
    control.abort();
    await expect(text).rejects.toMatchObject({ name: 'AbortError' });
    await eventually(() => node.openConnections === 0, 'the connection closes');
    expect(channel.endpoints()[0]?.failures).toBe(0);
  });

  it('may go on after the time of the call', async () => {
    const node = await start((_request, response) => {
      response.writeHead(200).write('a');
      setTimeout(() => response.end('b'), 1600);
    });
    const { fetch } = open({ nodes: [node.url] });
    expect(await (await fetch('/', { timeoutMs: 1500 })).text()).toBe('ab');
  });

  it('of a refusal that moved on is let go', async () => {
    const full = await start((_request, response) => {
      response.writeHead(503, { 'x-bd-error-code': '2004' }).write('and it goes on');
    });
    const good = await start();
    expect((await open({ nodes: [full.url, good.url] }).fetch('/')).status).toBe(200);
    await eventually(() => full.openConnections === 0, 'the refusing connection closes');
  });
});

it('a second try sends the headers that were given, untouched', async () => {
  const full = await start(refuse());
  const good = await start();
  const headers = new Headers({ a: 'b' });
  await open({ nodes: [full.url, good.url] }).fetch('/', { headers });
  expect([...headers]).toEqual([['a', 'b']]);
  expect(good.seen[0]?.headers.a).toBe('b');
});

it('redirect: manual gives the redirect itself', async () => {
  const node = await start(status(302, { location: 'http://127.0.0.1:1/' }));
  const { fetch, channel } = open({ nodes: [node.url] });
  expect((await fetch('/', { redirect: 'manual' })).status).toBe(302);
  expect(channel.endpoints()).toHaveLength(1);
});
