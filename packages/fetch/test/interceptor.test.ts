import { type Channel, type ChannelOptions, elimitInterceptor } from '@elimit/fetch';
import { closedPort, eventually, hang, refuse, reset, status } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { Agent, type Dispatcher, request } from 'undici';
import { atEnd, openChannel, start } from '../../client/test/support/opened.js';

function open(options: ChannelOptions): { dispatcher: Dispatcher; channel: Channel } {
  const channel = openChannel({ name: 'search', ...options });
  const agent = new Agent();
  atEnd(() => agent.destroy());
  return { dispatcher: agent.compose(elimitInterceptor(channel)), channel };
}

it('a URL with the channel’s name goes to its nodes, past one that is down and one that refuses', async () => {
  const full = await start(refuse());
  const good = await start((_request, response) => {
    response.writeHead(201, { 'x-a': 'b' }).end('made');
  });
  const { dispatcher, channel } = open({ nodes: [await closedPort(), full.url, good.url] });
  const answer = await request('http://search/items?q=1', {
    dispatcher,
    method: 'POST',
    body: 'x',
  });
  expect(answer.statusCode).toBe(201);
  expect(answer.headers['x-a']).toBe('b');
  expect(await answer.body.text()).toBe('made');
  expect(good.seen[0]).toMatchObject({ url: '/items?q=1', method: 'POST', body: 'x' });
  expect(good.seen[0]?.headers.host).toBe(`127.0.0.1:${good.port}`);
  expect(Number(good.seen[0]?.headers['x-request-timeout-ms'])).toBeGreaterThan(0);
  expect(channel.endpoints().map(({ state, refusals }) => [state, refusals])).toEqual([
    ['open', 0],
    ['closed', 1],
    ['closed', 0],
  ]);
});

it('other URLs go where they say, guarded by their origin', async () => {
  const other = await start(status(500));
  const { dispatcher, channel } = open({ unlisted: true });
  expect((await request(`${other.url}/x`, { dispatcher })).statusCode).toBe(500);
  expect(channel.endpoints()).toMatchObject([{ origin: other.url, failures: 1 }]);
});

it('bodies come through whole, and bodiless answers end', async () => {
  const large = 'x'.repeat(300_000);
  const node = await start((request_, response) => {
    if (request_.url === '/large') response.end(large);
    else response.writeHead(204).end();
  });
  const { dispatcher } = open({ nodes: [node.url] });
  const answer = await request('http://search/large', { dispatcher });
  expect(await answer.body.text()).toBe(large);
  expect((await request('http://search/', { dispatcher })).statusCode).toBe(204);
  expect((await request('http://search/large', { dispatcher, method: 'HEAD' })).statusCode).toBe(
    200,
  );
});

it('errors come as they are: the channel’s own, and the last try’s', async () => {
  const bad = await start(reset);
  const { dispatcher } = open({ nodes: [bad.url], maxRetries: 0 });
  await expect(request('http://search/', { dispatcher })).rejects.toMatchObject({
    code: 'ECONNRESET',
  });
  const gone = open({
    nodes: [await closedPort()],
    maxRetries: 0,
    breaker: { minIsolationMs: 3000 },
  });
  const call = () => request('http://search/', { dispatcher: gone.dispatcher });
  await expect(call()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await expect(call()).rejects.toMatchObject({ code: 'ERR_NO_ENDPOINT', brpcCode: 112 });
});

it('a late call ends with its connection', async () => {
  const node = await start(hang);
  const { dispatcher } = open({ nodes: [node.url], timeoutMs: 250, connectTimeoutMs: 100 });
  await expect(request('http://search/', { dispatcher })).rejects.toMatchObject({
    code: 'ERR_TIMEOUT',
  });
  await eventually(() => node.openConnections === 0, 'the connection closes');
});

it('a caller that gives up ends its call alone, before and after the headers', async () => {
  const node = await start((request_, response) => {
    if (request_.url === '/begun') response.writeHead(200).write('first');
  });
  const { dispatcher, channel } = open({ nodes: [node.url] });
  const control = new AbortController();
  const call = request('http://search/', { dispatcher, signal: control.signal });
  await eventually(() => node.seen.length === 1, 'the request is there');
  control.abort();
  await expect(call).rejects.toMatchObject({ name: 'AbortError' });
  const answer = await request('http://search/begun', { dispatcher });
  answer.body.on('error', () => {});
  answer.body.destroy();
  await eventually(() => node.openConnections === 0, 'the connections close');
  expect(channel.endpoints()[0]).toMatchObject({ failures: 0, inflight: 0 });
});

it('an answer that breaks off is charged to its node', async () => {
  const node = await start((request_, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('half', () => setTimeout(() => request_.socket.resetAndDestroy(), 20));
  });
  const { dispatcher, channel } = open({ nodes: [node.url] });
  const answer = await request('http://search/', { dispatcher });
  await expect(answer.body.text()).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(channel.endpoints()[0]?.failures).toBe(1);
});

it.each([
  {
    rules: { maxRetires: 1 },
    says: 'elimitInterceptor.maxRetires is not an option; known: resend',
  },
  { rules: { signal: undefined }, says: 'elimitInterceptor.signal is not an option' },
  { rules: { maxRetries: -1 }, says: 'elimitInterceptor.maxRetries must be a whole number from 0' },
  { rules: { resend: 1 }, says: 'elimitInterceptor.resend must be true or false, got 1' },
  { rules: null, says: 'elimitInterceptor must be an object, got null' },
])('$rules are refused when it is made', ({ rules, says }) => {
  expect(() => elimitInterceptor({ unlisted: true }, rules as never)).toThrow(says);
});
