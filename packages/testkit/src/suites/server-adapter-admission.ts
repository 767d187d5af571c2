import { strict as assert } from 'node:assert';
import { AsyncLocalStorage } from 'node:async_hooks';
import { METHODS } from 'node:http';
import {
  createGuard,
  createGuards,
  createRegistry,
  type ElimitEvent,
  type Guard,
  type GuardSnapshot,
  type Priority,
} from '@elimit/core';
import { eventually, type RawClient } from './raw-client.js';
import { type Answer, type Bench, Held, onBench } from './server-adapter-bench.js';
import type {
  ServerAdapterHarness,
  SuiteCase,
  SuiteLimitOptions,
} from './server-adapter-harness.js';

/** Admission, refusals on the wire, options, the dispatch queue. */
export function admissionCases(harness: ServerAdapterHarness): SuiteCase[] {
  const on = (name: string, limit: number, run: (bench: Bench) => Promise<void>): SuiteCase => ({
    name,
    run: () => onBench(harness, limit, run),
  });
  return [
    on('admits up to the limit, refuses the next, and admits again', 2, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler);
      const answers = [bench.get(), bench.get()];
      await held.started(2);
      assert.equal((await bench.get()).status, 503);
      assert.equal(held.responses.length, 2);
      held.answer();
      for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
      const again = bench.get();
      await held.started(1);
      held.answer();
      assert.equal((await again).status, 200);
      await bench.ended({ success: 3 });
      assert.equal(bench.guard.snapshot().rejected.concurrency, 1);
    }),

    on('says no with status, headers and the ELIMIT body', 1, async (bench) => {
      const answer = await refused(bench);
      assert.equal(answer.status, 503);
      assertRefusal(answer, 'concurrency');
    }),

    on('says no before the body is read, and the connection goes on', 1, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler);
      (await bench.client()).request('GET /');
      await held.started(1);
      const client = await bench.client();
      client.request('POST /', 'Content-Length: 10').send('01234');
      await client.until(/503[\s\S]*"reason":"concurrency"/);
      client.send('56789');
      held.answer();
      await bench.inflight(0);
      client.request('GET /');
      await held.started(1);
      held.answer('and on');
      await client.until(/200[\s\S]*and on/);
    }),

    on('replaces status and message', 1, async (bench) => {
      const answer = await refused(bench, { statusCode: 429, message: 'Later, please.' });
      assert.equal(answer.status, 429);
      assert.equal(bodyOf(answer).message, 'Later, please.');
      assert.equal(bodyOf(answer).code, 'ELIMIT');
    }),

    on('leaves the whole refusal to a handler', 1, async (bench) => {
      const held = new Held();
      const limit = {
        ...bench.limit(),
        refuseWith: ({ reason }: { reason: string }) => ({ status: 418, text: `no: ${reason}` }),
      };
      await bench.start({ limits: [limit], routes: { '/': held.handler } });
      const first = bench.get();
      await held.started(1);
      const { status, text } = await bench.get();
      assert.deepEqual([status, text], [418, 'no: concurrency']);
      held.answer();
      await first;
    }),

    on('skips what it is told to skip, and does not count it', 1, async (bench) => {
      const held = new Held();
      await bench.start({
        limits: [bench.limit({ skip: (req) => req.url === '/healthz' })],
        routes: { '/': held.handler, '/healthz': () => 'well' },
      });
      (await bench.client()).request('GET /');
      await held.started(1);
      assert.equal((await bench.get()).status, 503);
      assert.equal((await bench.get('/healthz')).text, 'well');
      held.answer();
      await bench.ended({ success: 1 });
    }),

    on('counts and lets through in a dry run', 1, async (bench) => {
      const held = new Held();
      const registry = createRegistry();
      await bench.start({
        limits: [{ target: 1, options: { dryRun: true, registry, name: 'dry' } }],
        routes: { '/': held.handler },
      });
      const answers = [bench.get(), bench.get(), bench.get()];
      await held.started(3);
      held.answer();
      for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
      const snapshot = registry.sources()[0]?.snapshot() as GuardSnapshot;
      assert.equal(snapshot.name, 'dry');
      assert.deepEqual([snapshot.wouldReject, snapshot.inflight], [2, 0]);
    }),

    on('counts a request once that meets the same middleware twice', 1, async (bench) => {
      const limit = bench.limit();
      await bench.start({
        limits: [limit, limit],
        routeLimits: { '/': limit },
        routes: { '/': () => 'ok' },
      });
      assert.equal((await bench.get()).status, 200);
      assert.equal(bench.guard.snapshot().admitted, 1);
      await bench.ended({ success: 1 });
    }),

    on('counts a request once for a guard that stands behind two middlewares', 1, async (bench) => {
      await bench.start({
        limits: [bench.limit()],
        routeLimits: { '/': bench.limit() },
        routes: { '/': () => 'ok' },
      });
      assert.equal((await bench.get()).status, 200);
      assert.equal(bench.guard.snapshot().admitted, 1);
    }),

    on('ignores, in the outer guard, what an inner one refuses', 5, async (bench) => {
      const inner = createGuard({ limit: 1, name: 'inner', registry: false });
      const held = new Held();
      await bench.start({
        limits: [bench.limit()],
        routeLimits: { '/': { target: inner } },
        routes: { '/': held.handler },
      });
      const first = bench.get();
      await held.started(1);
      assertRefusal(await bench.get(), 'concurrency');
      await bench.inflight(1);
      held.answer();
      await first;
      await bench.ended({ success: 1, ignored: 1 });
      assert.equal(inner.inflight, 0);
    }),

    on(
      'refuses at once what is past its deadline, and takes nonsense for no deadline',
      5,
      async (bench) => {
        await bench.serve(() => 'ok');
        assertRefusal(await bench.get('/', { 'x-request-timeout-ms': '0' }), 'deadline');
        assertRefusal(await bench.get('/', { 'grpc-timeout': '0S' }), 'deadline');
        assertRefusal(
          await bench.get('/', { 'x-request-timeout-ms': '5000', 'grpc-timeout': '0n' }),
          'deadline',
        );
        for (const value of ['abc', '', '-1', '1e99', 'NaN', '5000', '5000, 6000']) {
          const { status } = await bench.get('/', { 'x-request-timeout-ms': value });
          assert.equal(status, 200, `x-request-timeout-ms: ${value}`);
        }
        await bench.ended({ success: 7 });
        assert.equal(bench.guard.snapshot().rejected.deadline, 3);
      },
    ),

    on('reads deadlines from the headers it is told, or from none', 5, async (bench) => {
      const none = createGuard({ limit: 5, name: 'none', registry: false });
      await bench.start({
        routeLimits: {
          '/own': bench.limit({ deadlineHeaders: ['X-My-Deadline'] }),
          '/none': { target: none, options: { deadlineHeaders: false } },
        },
        routes: { '/own': () => 'ok', '/none': () => 'ok' },
      });
      assertRefusal(await bench.get('/own', { 'x-my-deadline': '0' }), 'deadline');
      assert.equal((await bench.get('/own', { 'x-request-timeout-ms': '0' })).status, 200);
      assert.equal((await bench.get('/none', { 'x-request-timeout-ms': '0' })).status, 200);
    }),

    on(
      'hands timeout and priority to the guard; a header can only shorten the timeout',
      5,
      async (bench) => {
        const asked: [number | undefined, Priority | undefined][] = [];
        const { target, options } = bench.limit({
          timeoutMs: 300,
          priority: (req) => (req.headers['x-class'] === 'batch' ? 'sheddable' : 'default'),
        });
        await bench.start({
          limits: [{ target: overheard(target, asked), options }],
          routes: { '/': () => 'ok' },
        });
        await bench.get();
        await bench.get('/', { 'x-request-timeout-ms': '200', 'x-class': 'batch' });
        await bench.get('/', { 'x-request-timeout-ms': '400' });
        assert.deepEqual(asked, [
          [300, 'default'],
          [200, 'sheddable'],
          [300, 'default'],
        ]);
      },
    ),

    on('tells of refusals', 1, async (bench) => {
      const events: ElimitEvent[] = [];
      const held = new Held();
      await bench.start({
        limits: [
          {
            target: 1,
            options: {
              name: 'told',
              onEvent: (event) => events.push(event),
              registry: createRegistry(),
            },
          },
        ],
        routes: { '/': held.handler },
      });
      const first = bench.get();
      await held.started(1);
      await bench.get();
      assert.deepEqual(events, [{ type: 'reject', name: 'told', reason: 'concurrency', count: 1 }]);
      held.answer();
      await first;
    }),

    on('gives each method a guard, named by its template', 5, async (bench) => {
      const guards = createGuards({ methodMaxConcurrency: 3, registry: createRegistry() });
      const limit = { target: guards };
      await bench.start({
        routeLimits: { '/items/:id': limit, '/items': limit },
        routes: { '/items/:id': () => 'one', '/items': () => 'all' },
      });
      for (const path of ['/items/1', '/items/2', '/items']) await bench.get(path);
      assert.deepEqual(
        guards.names().toSorted(),
        [harness.methodName('/items'), harness.methodName('/items/:id')].toSorted(),
      );
      const { outcomes } = guards.guardOf(harness.methodName('/items/:id')).snapshot();
      assert.equal(outcomes.success, 2);
      assert.equal(guards.server.snapshot().outcomes.success, 3);
    }),

    on(
      'bounds and guards the rest when a client uses up all names by odd methods',
      5,
      async (bench) => {
        const declared = harness.methodName('/declared');
        const guards = createGuards({
          methodMaxConcurrency: 2,
          methods: { [declared]: 1 },
          maxNames: 4,
          registry: false,
        });
        const held = new Held();
        const limit = { target: guards };
        await bench.start({
          routeLimits: { '/any': limit, '/late': limit, '/declared': limit },
          routes: { '/any': () => 'ok', '/late': held.handler, '/declared': held.handler },
        });
        const methods = METHODS.filter((method) => method !== 'CONNECT');
        for (const method of methods) await bench.get('/any', {}, method);
        assert.equal(guards.names().length <= 5, true, `names: ${guards.names().join(', ')}`);
        // a route met only now has a limit, if one that it may have to share
        const answers = [bench.get('/late'), bench.get('/late')];
        await held.started(2);
        assertRefusal(await bench.get('/late'), 'concurrency');
        // and one that was declared has its own
        answers.push(bench.get('/declared'));
        await held.started(3);
        assert.equal(guards.guardOf(declared).inflight, 1);
        assertRefusal(await bench.get('/declared'), 'concurrency');
        held.answer();
        for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
        assert.equal(guards.names().length <= 5, true, `names: ${guards.names().join(', ')}`);
        await eventually(() => guards.server.inflight === 0, 'all calls to end');
      },
    ),

    on('refuses by the cap of the server, for no fault of the method', 5, async (bench) => {
      const guards = createGuards({ serverMaxConcurrency: 1, registry: createRegistry() });
      const held = new Held();
      await bench.start({
        limits: [{ target: guards, options: { name: 'all' } }],
        routes: { '/': held.handler },
      });
      const first = bench.get();
      await held.started(1);
      assertRefusal(await bench.get(), 'server');
      held.answer();
      await first;
      assert.equal(guards.server.inflight, 0);
    }),

    on('signals a hang-up to handlers that ask', 5, async (bench) => {
      const signals: AbortSignal[] = [];
      const held = new Held();
      await bench.serve((req, res) => {
        signals.push(harness.signalOf(req));
        return held.handler(req, res);
      });
      const leaver = await bench.client();
      leaver.request('GET /');
      await held.started(1);
      leaver.destroy();
      await eventually(() => signals[0]?.aborted === true, 'the signal to abort');
      assert.match(String(signals[0]?.reason), /^AbortError: /);
      held.answer();
      const stayer = bench.get();
      await held.started(1);
      held.answer();
      await stayer;
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(signals[1]?.aborted, false);
    }),

    on('runs each handler in the async context of its own request', 200, async (bench) => {
      const stores = new AsyncLocalStorage<string>();
      const seen: [string | undefined, string | undefined][] = [];
      await bench.start({
        around: (req, next) => stores.run(String(req.headers['x-id']), next),
        limits: [bench.limit()],
        routes: {
          '/': async (req) => {
            burn(1);
            const early = stores.getStore();
            await Promise.resolve();
            seen.push([String(req.headers['x-id']), early === stores.getStore() ? early : 'lost']);
            return 'ok';
          },
        },
      });
      const ids = Array.from({ length: 100 }, (_, i) => String(i));
      await Promise.all(ids.map((id) => bench.get('/', { 'x-id': id })));
      assert.equal(seen.length, 100);
      for (const [id, store] of seen) assert.equal(store, id);
      await bench.ended({ success: 100 });
    }),

    on('never starts a handler whose client has left while it waited', 20, async (bench) => {
      let started = 0;
      let startedWhenAllLeft: number | undefined;
      let clients: RawClient[] = [];
      await bench.serve(() => {
        started++;
        burn(5); // no longer a young turn: whoever is read next has to wait
        // One poll reads what a client has sent, and only the next one that it has left. So they leave once all have
        // been read, during a handler that leaves no time for another before the next poll
        if (startedWhenAllLeft === undefined && bench.guard.snapshot().admitted === 10) {
          startedWhenAllLeft = started;
          for (const client of clients) client.destroy();
          burn(200);
        }
        return 'ok';
      });
      clients = await bench.clients(10);
      for (const client of clients) client.request('GET /');
      await eventually(
        () => startedWhenAllLeft !== undefined && bench.guard.inflight === 0,
        'all calls to end',
      );
      assert.equal(started, startedWhenAllLeft);
      await bench.ended({ success: started, abandoned: 10 - started });
    }),
  ];
}

/** The answer to the second of two requests, at a limit of one. */
async function refused(bench: Bench, options: SuiteLimitOptions = {}): Promise<Answer> {
  const held = new Held();
  await bench.serve(held.handler, options);
  const first = bench.get();
  await held.started(1);
  const answer = await bench.get();
  held.answer();
  await first;
  return answer;
}

function bodyOf({ text }: Answer): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

function assertRefusal(answer: Answer, reason: string): void {
  const { status, headers } = answer;
  assert.equal(status, 503);
  const body = bodyOf(answer);
  const { message, retryAfterMs } = body;
  assert.deepEqual(Object.keys(body), ['code', 'errno', 'reason', 'message', 'retryAfterMs']);
  assert.deepEqual([body.code, body.errno, body.reason], ['ELIMIT', 2004, reason]);
  assert.equal(typeof message, 'string');
  assert.equal(
    typeof retryAfterMs === 'number' && retryAfterMs >= 80 && retryAfterMs <= 12_000,
    true,
  );
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(headers['x-bd-error-code'], '2004');
  assert.equal(headers['retry-after'], String(Math.max(1, Math.ceil(Number(retryAfterMs) / 1000))));
}

/** The guard, with what it is asked written down. */
function overheard(guard: Guard, asked: [number | undefined, Priority | undefined][]): Guard {
  return new Proxy(guard, {
    get(target, key) {
      if (key === 'tryAcquire') {
        return (options: Parameters<Guard['tryAcquire']>[0]) => {
          asked.push([options?.timeoutMs, options?.priority]);
          return target.tryAcquire(options);
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function burn(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}
