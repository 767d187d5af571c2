import { Readable } from 'node:stream';
import { breaker, createChannel } from '@elimit/axios';
import { type ClientAdapterHarness, clientAdapterCases } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import axios from 'axios';

const harness: ClientAdapterHarness = {
  name: 'axios',
  open(options) {
    const channel = createChannel(options);
    const http = breaker(
      axios.create({ validateStatus: () => true, responseType: 'text' }),
      channel,
    );
    return {
      endpoints: () => channel.endpoints(),
      close: () => channel.close(),
      async request({ url, method = 'GET', headers, body, isStream, form, timeoutMs, ...rules }) {
        const { status, data } = await http.request<string>({
          url,
          method,
          headers: { ...headers },
          data: form ? formOf(form) : isStream ? Readable.from([Buffer.from(body ?? '')]) : body,
          ...(timeoutMs !== undefined && { timeout: timeoutMs }),
          ...rules, // signal, resend, breaker, carriedTimeoutMs
        });
        return { status, body: data };
      },
    };
  },
};

function formOf(fields: Readonly<Record<string, string>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

describe('axios', () => {
  it.each(clientAdapterCases(harness))('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
