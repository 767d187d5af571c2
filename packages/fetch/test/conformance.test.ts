import { createChannel, createFetch } from '@elimit/fetch';
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
      async request({ url, body, isStream, form, ...init }) {
        const text = isStream ? new Blob([body ?? '']).stream() : body;
        const answer = await fetch(url, {
          ...init, // method, headers, signal, timeoutMs, resend, breaker, carriedTimeoutMs
          ...(form && { body: formOf(form) }),
          ...(text !== undefined && { body: text, duplex: 'half' }),
        });
        return { status: answer.status, body: await answer.text() };
      },
    };
  },
};

function formOf(fields: Readonly<Record<string, string>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

describe('fetch', () => {
  it.each(clientAdapterCases(fetchHarness))('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
