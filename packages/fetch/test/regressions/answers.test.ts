import { Readable } from 'node:stream';
import { createFetch } from '@elimit/fetch';
import { status } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import type { Dispatcher } from 'undici';
import { openChannel, start } from '../../../client/test/support/opened.js';
import { watchedHandler } from '../../src/watched-handler.js';

describe('an answer that cannot be decoded costs the node a failure', () => {
  it.each([
    { encoding: 'gzip', end: true },
    { encoding: 'deflate', end: true },
    { encoding: 'br', end: true },
    { encoding: 'gzip', end: false },
  ])('$encoding, ended: $end', async ({ encoding, end }) => {
    const node = await start((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      response.write('\u001fno such thing, at all');
      if (end) response.end();
    });
    const channel = openChannel({ nodes: [node.url] });
    const answer = await createFetch(channel)('/');
    await expect(answer.text()).rejects.toBeInstanceOf(Error);
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1 });
  });
});

describe('a redirect that the caller cannot have followed costs the node nothing', () => {
  const put = () =>
    ({ method: 'PUT', body: Readable.from(['a']) as never, duplex: 'half' }) as const;
  it.each<{ it: string; code: number; init: () => RequestInit }>([
    { it: 'redirect: "error"', code: 302, init: () => ({ redirect: 'error' }) },
    { it: 'redirect: "error" and 303', code: 303, init: () => ({ redirect: 'error' }) },
    { it: 'a stream and 307', code: 307, init: put },
    { it: 'a stream and 308', code: 308, init: put },
  ])('$it', async ({ code, init }) => {
    const node = await start(status(code, { location: '/there' }));
    const channel = openChannel({ nodes: [node.url] });
    await expect(createFetch(channel)('/', init())).rejects.toThrow('fetch failed');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 0, inflight: 0 });
  });

  it('but a connection that breaks behind one is the node’s', async () => {
    const moved = status(303, { location: '/there' });
    const node = await start((request, response) => {
      if (request.url === '/there') request.socket.resetAndDestroy();
      else moved(request, response);
    });
    const channel = openChannel({ nodes: [node.url], maxRetries: 0 });
    await expect(createFetch(channel)('/', put())).rejects.toThrow('fetch failed');
    expect(channel.endpoints()[0]).toMatchObject({ calls: 1, failures: 1, inflight: 0 });
  });
});

it('a request that undici starts again is ended by its new controller', () => {
  const ended: string[] = [];
  const controller = (name: string) =>
    ({ abort: () => ended.push(name) }) as unknown as Dispatcher.DispatchController;
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart: () => {},
    onResponseStart: (given) => given.abort(new Error('enough')),
  };
  const watched = watchedHandler(handler, { connected() {}, answered() {}, brokeOff() {} });
  watched.onRequestStart?.(controller('first'), {});
  watched.onRequestStart?.(controller('second'), {});
  watched.onResponseStart?.(controller('third'), 200, {}, 'OK');
  expect(ended).toEqual(['third']);
});
