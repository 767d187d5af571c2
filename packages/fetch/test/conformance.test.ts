import { createChannel, createFetch, type FetchInit } from '@elimit/fetch';
import { type ClientAdapterHarness, clientAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

const fetchHarness: ClientAdapterHarness = {
  name: 'fetch',
  open(options) {
    const channel = createChannel(options);
    const fetch = createFetch(channel);
    return {
      endpoints: () => channel.endpoints(),
      close: () => channel.close(),
      async request({ url, body, isStream, ...init }) {
        const answer = await fetch(url, {
          ...init,
          ...(body !== undefined && {
            body: isStream ? new Blob([body]).stream() : body,
            duplex: 'half',
          }),
        } as FetchInit);
        return { status: answer.status, body: await answer.text() };
      },
    };
  },
};

describe('fetch', () => {
  it.each(clientAdapterCases(fetchHarness))('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
