import http from 'node:http';
import https from 'node:https';
import type { Attempt, TryFn } from '@elimit/client';

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** The origin that answered. */
  readonly from: string;
}

/** One request with `node:http` and the attempt's own agent: what an adapter does, in twenty lines. */
export function httpTry(path = '/', method = 'GET', body = ''): TryFn<Answer> {
  return ({ endpoint, agent, signal, headers }: Attempt) =>
    new Promise((resolve, reject) => {
      const { request } = endpoint.url.protocol === 'https:' ? https : http;
      const sent = request(new URL(path, endpoint.url), { method, agent, signal, headers });
      sent.on('error', reject);
      sent.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode = 0, headers: received } = response;
          resolve({ status: statusCode, headers: received, body: text, from: endpoint.url.origin });
        });
      });
      sent.end(body);
    });
}
