import assert from 'node:assert/strict';
import type { ServerOptions } from 'node:https';
import type { EndpointSnapshot } from '@elimit/core';
import {
  closedPort,
  hang,
  ok,
  refuse,
  reset,
  resetMidBody,
  startSilentHost,
  startTestServer,
  status,
  type TestServer,
} from './client-adapter-servers.js';
import type { SuiteCase } from './server-adapter-harness.js';
import { testCertificate } from './test-certificate.js';

/** One logical call, as a user of the adapter would make it. */
export interface SuiteClientRequest {
  /** Relative for a call to the nodes, absolute for one that is guarded by its origin. */
  readonly url: string;
  /** @default 'GET' */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Send the body as a stream that can be read once. */
  readonly isStream?: boolean;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly resend?: boolean;
  /** A form with these fields, in place of a body. */
  readonly form?: Readonly<Record<string, string>>;
  readonly breaker?: boolean;
  readonly carriedTimeoutMs?: number;
}

export interface SuiteClientAnswer {
  readonly status: number;
  readonly body: string;
}

/** The adapter under test, with a channel of its own. */
export interface ClientAdapterSubject {
  /** Resolves for every answer, whatever its status: for clients that throw on some, with the error's answer. */
  request(init: SuiteClientRequest): Promise<SuiteClientAnswer>;
  endpoints(): readonly EndpointSnapshot[];
  close(): void;
}

export interface ClientAdapterHarness {
  readonly name: string;
  /** @param channel - options of `createChannel`; error cost is on as the adapter has it by default */
  open(channel: Readonly<Record<string, unknown>>): ClientAdapterSubject;
  /** Cases this adapter differs in, each with its reason. At most two. */
  readonly exceptions?: Readonly<Record<string, string>>;
}

interface Bench {
  start(handler?: TestServer['handler'], tls?: ServerOptions): Promise<TestServer>;
  open(options: Readonly<Record<string, unknown>>): ClientAdapterSubject;
  onEnd(end: () => unknown): void;
}

/**
 * What every client adapter does, as cases for any test runner; they use real sockets on the loopback.
 *
 * ```ts
 * it.each(clientAdapterCases(harness))('$name', ({ run }) => run());
 * ```
 *
 * @throws Error if an exception names no case, or if there are more than two
 */
export function clientAdapterCases(harness: ClientAdapterHarness): SuiteCase[] {
  const cases = Object.entries(CASES).map(([name, play]) => ({
    name,
    run: () => withBench(harness, play),
  }));
  const exceptions = Object.keys(harness.exceptions ?? {});
  if (exceptions.length > 2) {
    throw new Error(`${harness.name} differs in ${exceptions.length} cases: two at most`);
  }
  for (const name of exceptions) {
    if (!Object.hasOwn(CASES, name)) throw new Error(`no case is named: ${name}`);
  }
  return cases.filter(({ name }) => !exceptions.includes(name));
}

let lastGroup = 0;

async function withBench(
  harness: ClientAdapterHarness,
  play: (bench: Bench) => Promise<void>,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  lastGroup += 1;
  const connectionGroup = `${harness.name} ${lastGroup}`;
  try {
    await play({
      async start(handler = ok, tls?) {
        const server = await startTestServer(handler, tls);
        ends.push(() => server.stop());
        return server;
      },
      open(options) {
        // long times for busy machines: cases that are about time say their own
        const subject = harness.open({
          timeoutMs: 5000,
          connectTimeoutMs: 1000,
          random: () => 0, // round robin begins with the first node
          connectionGroup,
          breaker: { minIsolationMs: 2000 }, // outlasts a case
          ...options,
        });
        ends.push(() => subject.close());
        return subject;
      },
      onEnd: (end) => ends.push(end),
    });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_each, i) => make(i));

interface SuiteError {
  readonly code?: unknown;
  readonly brpcCode?: unknown;
  readonly status?: unknown;
  readonly cause?: unknown;
}

/** The error a promise rejects with. */
async function errorOf(promise: Promise<unknown>): Promise<SuiteError> {
  try {
    await promise;
  } catch (error) {
    return error as SuiteError;
  }
  throw new assert.AssertionError({ message: 'the call was answered, an error was expected' });
}

async function eventually(what: string, check: () => boolean): Promise<void> {
  const endMs = performance.now() + 5000;
  while (!check()) {
    if (performance.now() > endMs) throw new assert.AssertionError({ message: `not yet: ${what}` });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Answers with a redirect. */
const redirect = (to: string, code = 302) => status(code, { location: to });

/** The endpoint of an origin. */
function at(subject: ClientAdapterSubject, origin: string): EndpointSnapshot {
  const found = subject.endpoints().find((endpoint) => endpoint.origin === origin);
  assert.ok(found, `no endpoint of ${origin}`);
  return found;
}

const CASES: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'gives the answer of a node: status, body, path, query, headers and body sent': async (bench) => {
    const server = await bench.start((_request, response) => {
      response.writeHead(201).end('made');
    });
    const subject = bench.open({ nodes: [server.url] });
    const headers = Object.freeze({ 'x-user': 'me' });
    const answer = await subject.request({
      url: '/a/b?c=d',
      method: 'POST',
      headers,
      body: '{"e":1}',
    });
    assert.equal(answer.status, 201);
    assert.equal(answer.body, 'made');
    const [seen] = server.seen;
    assert.equal(seen?.url, '/a/b?c=d');
    assert.equal(seen.method, 'POST');
    assert.equal(seen.body, '{"e":1}');
    assert.equal(seen.headers['x-user'], 'me');
    assert.equal(seen.headers.host, `127.0.0.1:${server.port}`);
  },

  'takes the nodes in turn, on connections that stay': async (bench) => {
    const servers = [await bench.start(), await bench.start()];
    const subject = bench.open({ nodes: servers.map(({ url }) => url) });
    for (let i = 0; i < 6; i++) await subject.request({ url: '/' });
    assert.deepEqual(
      servers.map(({ seen }) => seen.length),
      [3, 3],
    );
    assert.deepEqual(
      servers.map(({ connections }) => connections),
      [1, 1],
    );
  },

  'sends the time left along, the same or less with each try': async (bench) => {
    const full = await bench.start(refuse());
    const good = await bench.start();
    const subject = bench.open({ nodes: [full.url, good.url], timeoutMs: 3000 });
    await subject.request({ url: '/' });
    const [first, second] = [full, good].map(({ seen }) =>
      Number(seen[0]?.headers['x-request-timeout-ms']),
    );
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(first <= 3000 && first > 0, `first try: ${first}`);
    assert.ok(second <= first && second > 0, `second try: ${second}`);
  },

  'moves on from a closed port, also with a POST, and isolates the node': async (bench) => {
    const down = await closedPort();
    const good = await bench.start();
    const subject = bench.open({ nodes: [down, good.url] });
    const answer = await subject.request({ url: '/', method: 'POST', body: 'x' });
    assert.equal(answer.status, 200);
    assert.equal(good.seen[0]?.body, 'x');
    const [first] = subject.endpoints();
    assert.equal(first?.state, 'open');
    assert.equal(first.reason, 'refused');
    assert.equal(first.nBreak, 1);
  },

  'tells connect timeouts from late answers: the third in a row isolates': async (bench) => {
    const silent = await startSilentHost();
    bench.onEnd(() => silent.close());
    const subject = bench.open({ nodes: [silent.url], connectTimeoutMs: 60, maxRetries: 0 });
    for (let i = 0; i < 3; i++) {
      assert.equal(subject.endpoints()[0]?.state, 'closed');
      await errorOf(subject.request({ url: '/' }));
    }
    assert.equal(subject.endpoints()[0]?.state, 'open');
    assert.equal(subject.endpoints()[0]?.reason, 'connectTimeout');
  },

  'says so when nobody can be used: ERR_NO_ENDPOINT, 112': async (bench) => {
    const down = await closedPort();
    const subject = bench.open({
      nodes: [down],
      healthCheck: { intervalMs: 3000 },
      breaker: { minIsolationMs: 3000 },
    });
    await errorOf(subject.request({ url: '/' }));
    const error = await errorOf(subject.request({ url: '/' }));
    assert.equal(error.code, 'ERR_NO_ENDPOINT');
    assert.equal(error.brpcCode, 112);
  },

  'does not send a POST again once bytes may have arrived, unless told': async (bench) => {
    const bad = await bench.start(reset);
    const good = await bench.start();
    const subject = bench.open({ nodes: [bad.url, good.url] });
    await errorOf(subject.request({ url: '/', method: 'POST', body: 'x' }));
    assert.equal(good.seen.length, 0);
    await subject.request({ url: '/', method: 'POST', body: 'x' });
    const answer = await subject.request({ url: '/', method: 'POST', body: 'y', resend: true });
    assert.equal(answer.status, 200);
    assert.equal(good.seen.at(-1)?.body, 'y');
  },

  'sends a GET again on another node after a reset': async (bench) => {
    const bad = await bench.start(reset);
    const good = await bench.start();
    const subject = bench.open({ nodes: [bad.url, good.url] });
    assert.equal((await subject.request({ url: '/' })).status, 200);
    assert.equal(subject.endpoints()[0]?.failures, 1);
  },

  'never sends a stream again': async (bench) => {
    const full = await bench.start(refuse());
    const good = await bench.start();
    const subject = bench.open({ nodes: [full.url, good.url] });
    const answer = await subject.request({ url: '/', method: 'PUT', body: 'once', isStream: true });
    assert.equal(answer.status, 503);
    assert.equal(full.seen[0]?.body, 'once');
    assert.equal(good.seen.length, 0);
  },

  'moves a refusal on with its body, and never holds it against the node': async (bench) => {
    const full = await bench.start(refuse());
    const good = await bench.start();
    const subject = bench.open({ nodes: [full.url, good.url] });
    for (let i = 0; i < 30; i++) {
      const answer = await subject.request({ url: '/', method: 'POST', body: `body ${i}` });
      assert.equal(answer.status, 200);
    }
    assert.deepEqual(
      good.seen.map(({ body }) => body),
      times(30, (i) => `body ${i}`),
    );
    const [first] = subject.endpoints();
    assert.equal(first?.state, 'closed');
    assert.equal(first.failures, 0);
    assert.ok(first.refusals >= 1);
    assert.equal(first.meanLatencyUs, 0);
  },

  'gives a 429 back as it is, and never moves it': async (bench) => {
    const quota = await bench.start(status(429, { 'retry-after': '0', 'x-bd-error-code': '2004' }));
    const good = await bench.start();
    const subject = bench.open({ nodes: [quota.url, good.url] });
    assert.equal((await subject.request({ url: '/' })).status, 429);
    assert.equal(good.seen.length, 0);
    assert.equal(subject.endpoints()[0]?.failures, 0);
  },

  'gives a 404 back as a success of the node': async (bench) => {
    const server = await bench.start(status(404));
    const subject = bench.open({ nodes: [server.url] });
    for (let i = 0; i < 30; i++) assert.equal((await subject.request({ url: '/' })).status, 404);
    assert.equal(subject.endpoints()[0]?.state, 'closed');
    assert.equal(subject.endpoints()[0]?.recentErrors, 0);
  },

  'isolates a node that answers 500, by error cost': async (bench) => {
    const bad = await bench.start(status(500));
    const good = await bench.start();
    const subject = bench.open({ nodes: [bad.url, good.url], breaker: { minIsolationMs: 4000 } });
    let errors = 0;
    for (let i = 0; i < 60 && subject.endpoints()[0]?.state === 'closed'; i++) {
      errors += Number((await subject.request({ url: '/' })).status === 500);
    }
    assert.equal(subject.endpoints()[0]?.reason, 'errorCost');
    assert.ok(errors <= 10, `${errors} errors`);
    for (let i = 0; i < 20; i++) assert.equal((await subject.request({ url: '/' })).status, 200);
  },

  'counts a reset in the middle of the body': async (bench) => {
    const bad = await bench.start(resetMidBody);
    const subject = bench.open({ nodes: [bad.url], maxRetries: 0 });
    await errorOf(subject.request({ url: '/' }));
    assert.equal(subject.endpoints()[0]?.failures, 1);
  },

  'ends a late call, and its connection: ERR_TIMEOUT': async (bench) => {
    const bad = await bench.start(hang);
    const subject = bench.open({ nodes: [bad.url], timeoutMs: 250, connectTimeoutMs: 100 });
    const error = await errorOf(subject.request({ url: '/' }));
    assert.equal(error.code, 'ERR_TIMEOUT');
    assert.equal(subject.endpoints()[0]?.failures, 1);
    await eventually('the connection closes', () => bad.openConnections === 0);
  },

  "takes a call's own timeout for the total": async (bench) => {
    const bad = await bench.start(hang);
    const subject = bench.open({ nodes: [bad.url] });
    const startMs = performance.now();
    assert.equal(
      (await errorOf(subject.request({ url: '/', timeoutMs: 200 }))).code,
      'ERR_TIMEOUT',
    );
    assert.ok(performance.now() - startMs < 4000);
    assert.ok(Number(bad.seen[0]?.headers['x-request-timeout-ms']) <= 200);
  },

  'ends only the call that is cancelled, and blames nobody': async (bench) => {
    const answers: (() => void)[] = [];
    const server = await bench.start((_request, response) => {
      answers.push(() => response.end('ok'));
    });
    const subject = bench.open({ nodes: [server.url] });
    const others = times(9, () => subject.request({ url: '/' }));
    const control = new AbortController();
    const cancelled = errorOf(subject.request({ url: '/', signal: control.signal }));
    await eventually('ten requests', () => answers.length === 10);
    control.abort();
    await cancelled;
    await eventually('one connection closes', () => server.openConnections === 9);
    for (const answer of answers) answer();
    for (const { status: each } of await Promise.all(others)) assert.equal(each, 200);
    assert.equal(subject.endpoints()[0]?.failures, 0);
    assert.equal(subject.endpoints()[0]?.inflight, 0);
  },

  'guards an absolute URL by its origin, and believes no mark from there': async (bench) => {
    const listed = await bench.start();
    const foreign = await bench.start(refuse());
    const subject = bench.open({ nodes: [listed.url] });
    const answer = await subject.request({ url: `${foreign.url}/x`, method: 'POST', body: 'x' });
    assert.equal(answer.status, 503);
    assert.equal(foreign.seen[0]?.url, '/x');
    assert.equal(listed.seen.length, 0);
    const [, unlisted] = subject.endpoints();
    assert.equal(unlisted?.origin, foreign.url);
    assert.equal(unlisted.refusals, 0);
    assert.equal(unlisted.failures, 1);
  },

  'follows a redirect on the same node, and counts one call': async (bench) => {
    const server = await bench.start((request, response) => {
      (request.url === '/old' ? redirect('/new') : ok)(request, response);
    });
    const subject = bench.open({ nodes: [server.url] });
    assert.equal((await subject.request({ url: '/old' })).body, 'ok');
    assert.deepEqual(
      server.seen.map(({ url }) => url),
      ['/old', '/new'],
    );
    assert.equal(at(subject, server.url).calls, 1);
    assert.equal(subject.endpoints().length, 1);
  },

  'charges a redirect to the host that was down, and asks its breaker the next time': async (
    bench,
  ) => {
    const down = await closedPort();
    const node = await bench.start(redirect(`${down}/x`));
    const subject = bench.open({ nodes: [node.url], maxRetries: 0 });
    assert.equal((await errorOf(subject.request({ url: '/' }))).code, 'ECONNREFUSED');
    assert.equal(at(subject, node.url).state, 'closed');
    assert.equal(at(subject, node.url).failures, 0);
    assert.equal(at(subject, down).state, 'open');
    assert.equal(at(subject, down).reason, 'refused');
    assert.equal((await errorOf(subject.request({ url: '/' }))).code, 'ERR_NO_ENDPOINT');
    assert.equal(at(subject, down).calls, 1);
  },

  'charges a redirect to the host that never answers': async (bench) => {
    const slow = await bench.start(hang);
    const node = await bench.start(redirect(`${slow.url}/x`));
    const subject = bench.open({ nodes: [node.url], timeoutMs: 1500 });
    assert.equal((await errorOf(subject.request({ url: '/' }))).code, 'ERR_TIMEOUT');
    assert.equal(at(subject, node.url).failures, 0);
    assert.equal(at(subject, slow.url).failures, 1);
    assert.equal(at(subject, slow.url).inflight + at(subject, node.url).inflight, 0);
  },

  'takes no refusal of a host that it was redirected to for a mark': async (bench) => {
    const foreign = await bench.start(refuse());
    const node = await bench.start(redirect(`${foreign.url}/x`, 307));
    const other = await bench.start();
    const subject = bench.open({ nodes: [node.url, other.url] });
    const answer = await subject.request({ url: '/', method: 'POST', body: 'x' });
    assert.equal(answer.status, 503);
    assert.equal(foreign.seen[0]?.body, 'x');
    assert.equal(other.seen.length, 0);
    assert.equal(at(subject, foreign.url).refusals, 0);
  },

  'sends a form, and sends it again': async (bench) => {
    const full = await bench.start(refuse());
    const good = await bench.start();
    const subject = bench.open({ nodes: [full.url, good.url] });
    const answer = await subject.request({ url: '/', method: 'POST', form: { name: 'value é' } });
    assert.equal(answer.status, 200);
    for (const { seen } of [full, good]) {
      assert.match(String(seen[0]?.headers['content-type']), /^multipart\/form-data; ?boundary=/);
      assert.match(String(seen[0]?.body), /name="name"\r\n\r\nvalue é\r\n/);
    }
  },

  'neither asks nor teaches the breaker for a call that says so': async (bench) => {
    const bad = await bench.start(status(500));
    const subject = bench.open({ nodes: [bad.url], breaker: { minIsolationMs: 4000 } });
    for (let i = 0; i < 40; i++) await subject.request({ url: '/', breaker: false });
    assert.equal(at(subject, bad.url).state, 'closed');
    for (let i = 0; i < 60 && at(subject, bad.url).state === 'closed'; i++) {
      await subject.request({ url: '/' });
    }
    assert.equal(at(subject, bad.url).state, 'open');
    assert.equal((await subject.request({ url: '/', breaker: false })).status, 500);
  },

  'blames nobody for a deadline from outside': async (bench) => {
    const slow = await bench.start(hang);
    const subject = bench.open({ nodes: [slow.url], timeoutMs: 3000 });
    const calls = times(20, () => errorOf(subject.request({ url: '/', carriedTimeoutMs: 80 })));
    for (const { code } of await Promise.all(calls)) assert.equal(code, 'ERR_TIMEOUT');
    assert.equal(at(subject, slow.url).state, 'closed');
    assert.equal(at(subject, slow.url).failures, 0);
    for (const { headers } of slow.seen) assert.ok(Number(headers['x-request-timeout-ms']) <= 80);
    assert.equal(
      (await errorOf(subject.request({ url: '/', carriedTimeoutMs: 0 }))).code,
      'ERR_TIMEOUT',
    );
  },

  'pays second tries from a budget: an outage of everything costs a tenth more': async (bench) => {
    const nodes = [await bench.start(status(503)), await bench.start(status(503))];
    const subject = bench.open({ nodes: nodes.map(({ url }) => url), errorCost: false });
    for (let i = 0; i < 100; i++) {
      assert.equal((await subject.request({ url: '/' })).status, 503);
    }
    const hits = nodes.reduce((sum, { seen }) => sum + seen.length, 0);
    assert.equal(hits, 120); // 100 calls, 10 %, and the floor of 10
  },

  'keeps the total over all tries, pauses included': async (bench) => {
    const nodes = [await bench.start(refuse(2)), await bench.start(refuse(2))];
    const subject = bench.open({
      nodes: nodes.map(({ url }) => url),
      timeoutMs: 800,
      connectTimeoutMs: 100,
    });
    const startMs = performance.now();
    assert.equal((await subject.request({ url: '/' })).status, 503); // a second does not fit
    assert.ok(performance.now() - startMs < 800);
    assert.deepEqual(
      nodes.map(({ seen }) => seen.length),
      [1, 1],
    );
  },

  'ends a pause before the next try when the caller cancels': async (bench) => {
    const full = await bench.start(refuse(2));
    const subject = bench.open({ nodes: [full.url] });
    const control = new AbortController();
    const call = errorOf(subject.request({ url: '/', signal: control.signal }));
    await eventually('a refusal', () => full.seen.length === 1);
    control.abort();
    await call;
    assert.equal(full.seen.length, 1);
    assert.equal(at(subject, full.url).inflight, 0);
  },

  'fails a call that was cancelled before it began': async (bench) => {
    const server = await bench.start();
    const subject = bench.open({ nodes: [server.url] });
    await errorOf(subject.request({ url: '/', signal: AbortSignal.abort() }));
    assert.equal(server.seen.length, 0);
  },

  'speaks TLS by the certificates of the nodes, with Host and server name of their own': async (
    bench,
  ) => {
    const server = await bench.start((request, response) => {
      const { servername } = request.socket as { servername?: unknown };
      response.end(`${request.headers.host} ${String(servername)}`);
    }, testCertificate);
    const tls = { ca: testCertificate.cert };
    const plain = bench.open({ nodes: [server.url], tls });
    assert.equal((await plain.request({ url: '/' })).body, `127.0.0.1:${server.port} false`);
    const named = bench.open({ nodes: [{ url: server.url, host: 'search.test' }], tls });
    assert.equal((await named.request({ url: '/' })).body, 'search.test search.test');
    const strict = bench.open({ nodes: [server.url], maxRetries: 0 });
    assert.equal((await errorOf(strict.request({ url: '/' }))).code, 'DEPTH_ZERO_SELF_SIGNED_CERT');
  },

  'trusts a host that it was redirected to by no certificate of the nodes': async (bench) => {
    const foreign = await bench.start(ok, testCertificate);
    const node = await bench.start(redirect(`${foreign.url}/x`), testCertificate);
    const tls = { ca: testCertificate.cert };
    const subject = bench.open({ nodes: [node.url], tls, maxRetries: 0 });
    assert.equal(
      (await errorOf(subject.request({ url: '/' }))).code,
      'DEPTH_ZERO_SELF_SIGNED_CERT',
    );
    assert.equal(at(subject, node.url).failures, 0);
    assert.equal(foreign.seen.length, 0);
  },

  'closes its connections with the channel': async (bench) => {
    const server = await bench.start();
    const subject = bench.open({ nodes: [server.url] });
    await subject.request({ url: '/' });
    subject.close();
    await eventually('no connection is left', () => server.openConnections === 0);
    assert.equal((await errorOf(subject.request({ url: '/' }))).code, 'ERR_CHANNEL_CLOSED');
  },
};
