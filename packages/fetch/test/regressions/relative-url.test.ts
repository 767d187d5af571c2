import { createFetch } from '@elimit/fetch';
import { expect, it } from '@jest/globals';
import { openChannel, start } from '../../../client/test/support/opened.js';

/** `URL` takes `\` for `/` and drops tabs and line ends: each of these names a host as `//host` does. */
it.each(['//', '/\\', '\\\\', '\\/', '/\t/', '\t//', '/\n\\', ' //', '/\r/'])(
  '%j before a host is refused, and its headers stay here',
  async (slashes) => {
    const [node, elsewhere] = [await start(), await start()];
    const fetch = createFetch(openChannel({ nodes: [node.url] }));
    const call = fetch(`${slashes}127.0.0.1:${elsewhere.port}/x`, {
      headers: { authorization: 'secret' },
    });
    await expect(call).rejects.toThrow('give a path or a whole URL');
    expect([node.seen, elsewhere.seen]).toEqual([[], []]);
  },
);

it.each([
  { input: '/.//127.0.0.1:1/x', url: '//127.0.0.1:1/x' },
  { input: '/..//127.0.0.1:1/x', url: '//127.0.0.1:1/x' },
  { input: '@127.0.0.1:1/x', url: '/@127.0.0.1:1/x' },
  { input: ':80@127.0.0.1:1', url: '/:80@127.0.0.1:1' },
  { input: '../x', url: '/x' },
  { input: 'x?a=//b#c', url: '/x?a=//b' },
  { input: '', url: '/' },
])('$input goes to a node as $url', async ({ input, url }) => {
  const node = await start();
  await createFetch(openChannel({ nodes: [node.url] }))(input);
  expect(node.seen[0]?.url).toBe(url);
});

it.each(['//a.invalid/x', '/\\b.invalid/x', '//node.invalid/x', '//a.invalid:80'])(
  '%j names a host, though none has this name',
  async (input) => {
    const node = await start();
    const call = createFetch(openChannel({ nodes: [node.url] }))(input);
    await expect(call).rejects.toThrow('give a path or a whole URL');
    expect(node.seen).toEqual([]);
  },
);
