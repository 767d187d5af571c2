import { createFetch } from '@elimit/fetch';
import { expect, it } from '@jest/globals';
import { openChannel, start } from '../../../client/test/support/opened.js';

it.each([
  { init: { headers: undefined } },
  { init: { method: undefined } },
  { init: { body: undefined } },
  { init: { body: null } },
  { init: { signal: undefined, redirect: undefined, timeoutMs: undefined } },
  { init: null },
  { init: undefined },
])('$init takes nothing from a Request', async ({ init }) => {
  const node = await start();
  const fetch = createFetch(openChannel({ nodes: [node.url] }));
  const request = new Request(node.url, { method: 'POST', body: 'text', headers: { a: 'b' } });
  await fetch(request, init as RequestInit);
  expect(node.seen[0]).toMatchObject({ method: 'POST', body: 'text' });
  expect(node.seen[0]?.headers.a).toBe('b');
});

it('signal: undefined keeps a Request’s own, and signal: null takes it off', async () => {
  const node = await start();
  const fetch = createFetch(openChannel({ nodes: [node.url] }));
  const request = () => new Request(node.url, { signal: AbortSignal.abort('mine') });
  await expect(fetch(request(), { signal: undefined } as never)).rejects.toBe('mine');
  expect((await fetch(request(), { signal: null })).status).toBe(200);
});

it('a second argument that is no object is refused by a TypeError that says so', async () => {
  const call = createFetch()('http://127.0.0.1:1', 5 as never);
  await expect(call).rejects.toThrow(
    new TypeError('fetch failed: its second argument must be an object, got 5'),
  );
});

class Init {
  get method() {
    return 'POST';
  }
  get body() {
    return 'z';
  }
  get headers() {
    return { a: 'b' };
  }
}

it.each<{ it: string; init: () => RequestInit }>([
  {
    it: 'a Request',
    init: () => new Request('http://a/', { method: 'POST', body: 'z', headers: { a: 'b' } }),
  },
  { it: 'an object of a class', init: () => new Init() },
  { it: 'an object that inherits', init: () => Object.create(new Init()) as RequestInit },
])('$it as second argument is read as fetch reads it', async ({ init }) => {
  const node = await start();
  await createFetch(openChannel({ nodes: [node.url] }))('/x', init());
  expect(node.seen[0]).toMatchObject({ method: 'POST', url: '/x', body: 'z' });
  expect(node.seen[0]?.headers.a).toBe('b');
});
