import http from 'node:http';
import https from 'node:https';
import { type Attempt, createChannel } from '@elimit/client';
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
          breaker: init.breaker,
          carriedTimeoutMs: init.carriedTimeoutMs,
          origin: isAbsolute ? new URL(init.url).origin : undefined,
        });
      },
    };
  },
};

async function send(
  first: Attempt,
  { url, form, ...init }: SuiteClientRequest,
): Promise<SuiteClientAnswer> {
  let request: Sent = { method: 'GET', ...init, url: new URL(url, first.endpoint.url) };
  if (form !== undefined) {
    const fields = new FormData();
    for (const [name, value] of Object.entries(form)) fields.append(name, value);
    const encoded = new Response(fields);
    const type = encoded.headers.get('content-type') as string;
    request = {
      ...request,
      body: await encoded.text(),
      headers: { ...init.headers, 'content-type': type },
    };
  }
  for (let attempt = first; ; attempt = first.redirected(request.url)) {
    const answer = await sendOnce(attempt, request);
    const { location } = answer.headers;
    if (location === undefined) return answer;
    const keeps = answer.status === 307;
    request = {
      url: new URL(location, request.url),
      method: keeps ? request.method : 'GET',
      ...(keeps && { body: request.body, headers: request.headers }),
    };
  }
}

interface Sent {
  readonly url: URL;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

function sendOnce(
  { endpoint, agent, signal, headers }: Attempt,
  init: Sent,
): Promise<SuiteClientAnswer & { headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const { request } = endpoint.url.protocol === 'https:' ? https : http;
    const sent = request(init.url, {
      method: init.method,
      headers: { ...init.headers, ...headers },
      agent,
      signal,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    sent.end(init.body);
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
