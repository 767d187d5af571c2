import http from 'node:http';
import { breaker, type Channel, type ChannelOptions } from '@elimit/axios';
import { closedPort, eventually, hang, refuse, reset, status } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import axios, {
  AxiosError,
  type AxiosInstance,
  CanceledError,
  type CreateAxiosDefaults,
} from 'axios';
import { atEnd, openChannel, start } from '../../client/test/support/opened.js';

function open(
  nodes: readonly string[] | undefined,
  defaults: CreateAxiosDefaults = {},
  options: ChannelOptions = {},
): { http: AxiosInstance; channel: Channel } {
  const whereTo = nodes === undefined ? { unlisted: true } : { nodes };
  const channel = openChannel({ ...whereTo, ...options });
  return { http: breaker(axios.create(defaults), channel), channel };
}

async function errorOf(promise: Promise<unknown>): Promise<AxiosError & Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as AxiosError & Record<string, unknown>;
  }
  throw new Error('the call was answered, an error was expected');
}

describe('an instance', () => {
  it('is given back itself', () => {
    const instance = axios.create();
    expect(breaker(instance)).toBe(instance);
  });

  it.each([
    {
      it: 'is refused if it is the global axios',
      make: () => breaker(axios as AxiosInstance),
      says: 'give it axios.create()',
    },
    {
      it: 'is refused a second time',
      make: () => breaker(breaker(axios.create())),
      says: 'has a breaker already',
    },
    {
      it: 'is refused if it is none',
      make: () => breaker(undefined as never),
      says: 'breaker(instance): it must be an axios instance, got undefined',
    },
    {
      it: 'is refused with an origin in place of a channel',
      make: () => breaker(axios.create(), 'http://a.test' as never),
      says: 'target must be a channel, or options to make one, got "http://a.test"',
    },
    {
      it: 'is refused with a host of its own beside nodes',
      make: () =>
        breaker(axios.create({ baseURL: 'https://a.test/v1' }), { nodes: ['http://127.0.0.1:1'] }),
      says: 'baseURL "https://a.test/v1" names a host, and so do the nodes of channel channel: keep the path alone',
    },
  ])('$it', ({ make, says }) => {
    expect(make).toThrow(says);
  });

  it('runs interceptors once for each call, however many tries it takes', async () => {
    const full = await start(refuse());
    const good = await start();
    const { http: client } = open([full.url, good.url]);
    const ran: string[] = [];
    client.interceptors.request.use((config) => {
      ran.push('request');
      return config;
    });
    client.interceptors.response.use((response) => {
      ran.push(`response ${response.status}`);
      return response;
    });
    await client.get('/');
    expect(ran).toEqual(['request', 'response 200']);
    expect([full.seen.length, good.seen.length]).toEqual([1, 1]);
  });

  it('bypasses the channel with an adapter of the request’s own', async () => {
    const { http: client, channel } = open(['http://127.0.0.1:1']);
    const answer = await client.get('/', {
      adapter: (config) =>
        Promise.resolve({ data: 'mine', status: 200, statusText: '', headers: {}, config }),
    });
    expect(answer.data).toBe('mine');
    expect(channel.endpoints()[0]?.calls).toBe(0);
  });
});

describe('a URL', () => {
  it.each([
    { baseURL: '/api/v1', url: 'items?a=1', path: '/api/v1/items?a=1&b=2' },
    { baseURL: 'api/', url: '/items', path: '/api/items?b=2' },
    { baseURL: undefined, url: 'items', path: '/items?b=2' },
    { baseURL: undefined, url: '', path: '/?b=2' },
    { baseURL: '/api', url: '@evil.test/x', path: '/api/@evil.test/x?b=2' },
  ])('$url on base $baseURL goes to the node as $path', async ({ baseURL, url, path }) => {
    const node = await start();
    const { http: client } = open([node.url], baseURL === undefined ? {} : { baseURL });
    await client.get(url, { params: { b: 2 } });
    expect(node.seen[0]?.url).toBe(path);
  });

  it('that is absolute goes where it says, past a base path', async () => {
    const node = await start();
    const other = await start();
    const { http: client } = open([node.url], { baseURL: '/api' });
    await client.get(`${other.url}/x`);
    expect(other.seen[0]?.url).toBe('/x');
    expect(node.seen).toHaveLength(0);
  });

  it('goes to its origin where the channel has no nodes, with an absolute base URL', async () => {
    const other = await start(status(500));
    const { http: client, channel } = open(undefined, { baseURL: `${other.url}/v1` });
    await errorOf(client.get('/x'));
    expect(other.seen[0]?.url).toBe('/v1/x');
    expect(channel.endpoints()).toMatchObject([{ origin: other.url, failures: 1 }]);
  });

  it('is refused as an AxiosError where it names no host and there are no nodes', async () => {
    const { http: client } = open(undefined);
    expect(await errorOf(client.get('/x'))).toMatchObject({
      name: 'AxiosError',
      code: 'ERR_INVALID_URL',
    });
    expect(await errorOf(client.get('ftp://a.test/x'))).toMatchObject({ code: 'ERR_INVALID_URL' });
  });

  it('is refused with an absolute base URL of the request’s own', async () => {
    const node = await start();
    const { http: client } = open([node.url]);
    const error = await errorOf(client.get('/x', { baseURL: 'http://a.test' }));
    expect(error).toMatchObject({ isAxiosError: true, code: 'ERR_BAD_OPTION_VALUE' });
    expect(node.seen).toHaveLength(0);
  });

  it('of the data: kind needs nobody', async () => {
    const { http: client } = open(['http://127.0.0.1:1']);
    expect((await client.get('data:text/plain,hello')).data).toEqual(Buffer.from('hello'));
  });
});

describe('an error', () => {
  it('is an AxiosError with code, brpcCode, cause, status and the caller’s config', async () => {
    const down = await closedPort();
    const { http: client } = open([down], {}, { breaker: { minIsolationMs: 3000 } });
    const refused = await errorOf(client.get('/x', { headers: { a: 'b' } }));
    expect(refused).toBeInstanceOf(AxiosError);
    expect(refused).toMatchObject({
      code: 'ECONNREFUSED',
      status: 502,
      statusCode: 502,
      expose: false,
    });
    expect(refused.config?.url).toBe('/x');
    const out = await errorOf(client.get('/x'));
    expect(out).toBeInstanceOf(AxiosError);
    expect(out).toMatchObject({
      name: 'AxiosError',
      code: 'ERR_NO_ENDPOINT',
      brpcCode: 112,
      status: 502,
    });
    expect(out.cause).toMatchObject({ name: 'NoEndpointError' });
    expect(JSON.stringify(out)).toContain('ERR_NO_ENDPOINT'); // the cause makes no circle
  });

  it('of the time has the caller’s own message, if there is one', async () => {
    const node = await start(hang);
    const { http: client } = open([node.url], { timeout: 60, timeoutErrorMessage: 'too late' });
    expect(await errorOf(client.get('/'))).toMatchObject({
      name: 'AxiosError',
      code: 'ERR_TIMEOUT',
      message: 'too late',
      status: 504,
    });
  });

  it('with an answer keeps it, and counts by validateStatus only for the caller', async () => {
    const node = await start(status(503));
    const { http: client, channel } = open([node.url], {}, { maxRetries: 0 });
    const error = await errorOf(client.get('/'));
    expect(error).toMatchObject({
      code: 'ERR_BAD_RESPONSE',
      status: 502,
      response: { status: 503 },
    });
    const answer = await client.get('/', { validateStatus: null });
    expect(answer.status).toBe(503);
    expect(channel.endpoints()[0]).toMatchObject({ failures: 2 });
  });

  it('of a 4xx is what axios makes of it', async () => {
    const node = await start(status(404));
    const { http: client, channel } = open([node.url]);
    const error = await errorOf(client.get('/'));
    expect(error).toMatchObject({
      code: 'ERR_BAD_REQUEST',
      status: 404,
      response: { status: 404 },
    });
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0 });
  });

  it.each(['signal', 'cancelToken'] as const)(
    'by the caller’s %s is a CanceledError',
    async (by) => {
      const node = await start(hang);
      const { http: client, channel } = open([node.url]);
      const control = new AbortController();
      const source = axios.CancelToken.source();
      const call = errorOf(
        client.get(
          '/',
          by === 'signal' ? { signal: control.signal } : { cancelToken: source.token },
        ),
      );
      await eventually(() => node.seen.length === 1, 'the request is there');
      if (by === 'signal') control.abort();
      else source.cancel('enough');
      const error = await call;
      expect(error).toBeInstanceOf(CanceledError);
      expect(error.code).toBe('ERR_CANCELED');
      if (by === 'cancelToken') expect(error.message).toBe('enough');
      expect(channel.endpoints()[0]).toMatchObject({ failures: 0, inflight: 0 });
      await eventually(() => node.openConnections === 0, 'the connection closes');
    },
  );

  it('of a bad option of the request is one, too', async () => {
    const { http: client } = open(['http://127.0.0.1:1']);
    const error = await errorOf(client.get('/', { maxRetries: -1 }));
    expect(error).toBeInstanceOf(AxiosError);
    expect(error.message).toContain('call.maxRetries');
  });
});

describe('a stream', () => {
  it('that came is still the caller’s to cancel, and takes its listener along', async () => {
    const node = await start((_request, response) => {
      response.writeHead(200).write('first');
    });
    const { http: client, channel } = open([node.url]);
    const control = new AbortController();
    const { data } = await client.get<http.IncomingMessage>('/', {
      responseType: 'stream',
      signal: control.signal,
    });
    const closed = new Promise((resolve) => {
      data.on('error', resolve);
    });
    control.abort();
    expect(await closed).toMatchObject({ code: 'ERR_CANCELED' });
    await eventually(() => node.openConnections === 0, 'the connection closes');
    expect(channel.endpoints()[0]).toMatchObject({ failures: 0 });
  });

  it('that breaks off is counted, though its headers were good', async () => {
    const node = await start((request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half', () => setTimeout(() => request.socket.resetAndDestroy(), 20));
    });
    const { http: client, channel } = open([node.url]);
    const { data } = await client.get<http.IncomingMessage>('/', { responseType: 'stream' });
    await new Promise((resolve) => {
      data.on('error', resolve);
      data.resume();
    });
    await eventually(() => channel.endpoints()[0]?.failures !== 0, 'it is counted');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });

  it('of a try that nobody sees is let go', async () => {
    const full = await start((_request, response) => {
      response.writeHead(503, { 'x-bd-error-code': '2004' }).write('and it goes on');
    });
    const good = await start();
    const { http: client } = open([full.url, good.url]);
    const { data } = await client.get<http.IncomingMessage>('/', { responseType: 'stream' });
    data.resume();
    await eventually(() => full.openConnections === 0, 'the refusing connection closes');
    expect(good.seen).toHaveLength(1);
  });
});

describe('connections', () => {
  it('are those of the caller’s own agent, if there is one', async () => {
    const node = await start();
    let made = 0;
    const agent = new (class extends http.Agent {
      override createConnection(...args: Parameters<http.Agent['createConnection']>) {
        made += 1;
        return super.createConnection(...args);
      }
    })({ keepAlive: true });
    atEnd(() => agent.destroy());
    const { http: client } = open([node.url], { httpAgent: agent });
    for (let i = 0; i < 3; i++) await client.get('/');
    expect(made).toBe(1);
    expect(node.connections).toBe(1);
  });

  it('that were closed while idle are no failure', async () => {
    const node = await start();
    const { http: client, channel } = open([node.url]);
    await client.get('/');
    await node.stop();
    await node.restart();
    await client.get('/');
    expect(channel.endpoints()[0]).toMatchObject({ state: 'closed', failures: 0 });
  });
});

describe('a redirect', () => {
  it('still runs the caller’s beforeRedirect, and ends with maxRedirects 0', async () => {
    const other = await start();
    const node = await start(status(302, { location: `${other.url}/x` }));
    const { http: client } = open([node.url]);
    const seen: unknown[] = [];
    await client.get('/', {
      beforeRedirect: (options, { statusCode }) => {
        seen.push(statusCode, options.href);
        (options as { headers: Record<string, string> }).headers['x-mine'] = 'yes';
      },
    });
    expect(seen).toEqual([302, `${other.url}/x`]);
    expect(other.seen[0]?.headers['x-mine']).toBe('yes');
    const error = await errorOf(client.get('/', { maxRedirects: 0 }));
    expect(error.response?.status).toBe(302);
    expect(other.seen).toHaveLength(1);
  });

  it('of a POST that fails afterwards is not begun again', async () => {
    const bad = await start(reset);
    const node = await start(status(303, { location: `${bad.url}/x` }));
    const other = await start();
    const { http: client } = open([node.url, other.url]);
    await errorOf(client.post('/', 'x'));
    expect(other.seen).toHaveLength(0);
  });
});
