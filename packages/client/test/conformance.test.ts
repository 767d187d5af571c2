import http from 'node:http';
import { createChannel } from '@elimit/client';
import {
  type ClientAdapterHarness,
  clientAdapterCases,
  type SuiteClientAnswer,
  type SuiteClientRequest,
} from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

/** The least adapter there can be: `node:http` around `channel.execute`. The suite is tried on it. */
const harness: ClientAdapterHarness = {
  name: 'plain node:http',
  open(options) {
    const channel = createChannel(options);
    return {
      endpoints: () => channel.endpoints(),
      close: () => channel.close(),
      request(init) {
        const isAbsolute = /^\w+:/.test(init.url);
        return channel.execute((attempt) => send(attempt, init), {
          method: init.method ?? 'GET',
          replayable: init.isStream !== true,
          errorCost: true,
          resend: init.resend,
          signal: init.signal,
          timeoutMs: init.timeoutMs,
          origin: isAbsolute ? new URL(init.url).origin : undefined,
        });
      },
    };
  },
};

function send(
  {
    endpoint,
    agent,
    signal,
    headers,
  }: Parameters<Parameters<ReturnType<typeof createChannel>['execute']>[0]>[0],
  init: SuiteClientRequest,
): Promise<SuiteClientAnswer> {
  return new Promise((resolve, reject) => {
    const request = http.request(new URL(init.url, endpoint.url), {
      method: init.method ?? 'GET',
      headers: { ...init.headers, ...headers },
      agent,
      signal,
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve(Object.assign(response, { status: response.statusCode ?? 0, body })),
      );
    });
    request.end(init.body);
  });
}

describe('the suite for client adapters', () => {
  it.each(clientAdapterCases(harness))('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });

  it('refuses exceptions that name no case, and more than two', () => {
    expect(() => clientAdapterCases({ ...harness, exceptions: { nonsense: 'why' } })).toThrow(
      'no case is named: nonsense',
    );
    expect(() => clientAdapterCases({ ...harness, exceptions: { a: '', b: '', c: '' } })).toThrow(
      'two at most',
    );
  });
});
