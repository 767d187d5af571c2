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
      async request({ url, method = 'GET', headers, body, isStream, signal, timeoutMs, resend }) {
        const { status, data } = await http.request<string>({
          url,
          method,
          headers: { ...headers },
          data: isStream ? Readable.from([Buffer.from(body ?? '')]) : body,
          resend,
          ...(signal && { signal }),
          ...(timeoutMs !== undefined && { timeout: timeoutMs }),
        });
        return { status, body: data };
      },
    };
  },
};

describe('axios', () => {
  it.each(clientAdapterCases(harness))('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
