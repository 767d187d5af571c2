import { strict as assert } from 'node:assert';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { OutcomeCounts } from '@elimit/core';
import { eventually } from './raw-client.js';
import { type Bench, Held, onBench } from './server-adapter-bench.js';
import type {
  ServerAdapterHarness,
  SuiteCase,
  SuiteLimitOptions,
} from './server-adapter-harness.js';

const TIMES = 100;
const AT_ONCE = 5;
const LARGE = Buffer.alloc(64 * 1024 * 1024);

const REJECTS = 'an async handler that rejects';

/** Ways in which a call can end, each tried a hundred times at a limit of five. */
interface Ending {
  readonly it: string;
  /** Plays it `AT_ONCE` times, all at once. */
  play(bench: Bench, held: Held): Promise<void>;
  readonly handler?: (held: Held) => Held['handler'];
  readonly options?: SuiteLimitOptions;
  readonly outcome: keyof OutcomeCounts;
}

async function readAll(req: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const chunk of req) bytes += (chunk as Buffer).length;
  return bytes;
}

const simply =
  (status: number, text: RegExp, line = 'GET /') =>
  async (bench: Bench): Promise<void> => {
    const clients = await bench.clients(AT_ONCE);
    for (const client of clients) client.request(line);
    for (const client of clients)
      await client.until(new RegExp(`HTTP/1.1 ${status} [\\s\\S]*${text.source}`));
    for (const client of clients) client.destroy();
  };

async function cutUploads(bench: Bench): Promise<void> {
  const clients = await bench.clients(AT_ONCE);
  for (const client of clients) client.request('POST /', 'Content-Length: 100').send('0123456789');
  await bench.inflight(AT_ONCE);
  for (const client of clients) client.destroy();
  await bench.inflight(0);
}

const ENDINGS: readonly Ending[] = [
  {
    it: 'an answer',
    play: simply(200, /ok/),
    handler: () => () => 'ok',
    outcome: 'success',
  },
  {
    it: 'a client that leaves before its answer: the slot stays until the handler has ended',
    play: async (bench, held) => {
      const clients = await bench.clients(AT_ONCE);
      for (const client of clients) client.request('GET /');
      await held.started(AT_ONCE);
      for (const client of clients) client.destroy();
      await held.left();
      assert.equal(bench.guard.inflight, AT_ONCE);
      held.answer();
    },
    outcome: 'abandoned',
  },
  {
    it: 'res.destroy() in the handler',
    play: async (bench) => {
      const clients = await bench.clients(AT_ONCE);
      for (const client of clients) client.request('GET /');
      for (const client of clients) await client.untilClosed();
    },
    handler: () => (_req, res) => {
      res.destroy();
      return undefined;
    },
    outcome: 'failure',
  },
  {
    it: 'req.destroy() in the handler, before the body was read',
    play: async (bench) => {
      const clients = await bench.clients(AT_ONCE);
      for (const client of clients) client.request('POST /', 'Content-Length: 100').send('0');
      for (const client of clients) await client.untilClosed();
    },
    handler: () => (req) => {
      req.destroy();
      return undefined;
    },
    options: { maxBodies: AT_ONCE },
    outcome: 'failure',
  },
  {
    it: 'an upload cut after 10 of 100 bytes',
    play: cutUploads,
    handler: () => async (req, res) => {
      await readAll(req).catch(() => res.end('cut'));
      return undefined;
    },
    options: { maxBodies: AT_ONCE },
    outcome: 'abandoned',
  },
  {
    it: 'an upload cut, whose reader answers before the response has heard of it',
    play: cutUploads,
    handler: () => (req, res) => {
      req.resume().once('aborted', () => res.writeHead(400).end('cut'));
      return undefined;
    },
    options: { maxBodies: AT_ONCE },
    outcome: 'abandoned',
  },
  {
    it: 'a handler that throws at once',
    play: simply(500, /\r\n\r\n/),
    handler: () => () => {
      throw new Error('thrown by the suite');
    },
    outcome: 'failure',
  },
  {
    it: REJECTS,
    play: simply(500, /\r\n\r\n/),
    handler: () => async () => {
      await Promise.resolve();
      throw new Error('rejected by the suite');
    },
    outcome: 'failure',
  },
  {
    it: 'res.end twice',
    play: simply(200, /ok/),
    handler: () => (_req, res) => {
      res.on('error', () => {}); // Node takes the second one for an error
      res.end('ok');
      res.end('again');
      return undefined;
    },
    outcome: 'success',
  },
  {
    it: 'HEAD',
    play: simply(200, /\r\n\r\n/, 'HEAD /'),
    handler: () => (_req, res) => {
      res.end('ok');
      return undefined;
    },
    outcome: 'success',
  },
  ...[204, 304].map(
    (status): Ending => ({
      it: `status ${status}`,
      play: simply(status, /\r\n\r\n/),
      handler: () => (_req, res) => {
        res.writeHead(status).end();
        return undefined;
      },
      outcome: 'success',
    }),
  ),
  {
    it: 'an answer of 404, which is no fault of ours',
    play: simply(404, /none/),
    handler: () => (_req, res) => {
      res.writeHead(404).end('none');
      return undefined;
    },
    outcome: 'success',
  },
];

function repeated(harness: ServerAdapterHarness, ending: Ending): SuiteCase {
  return {
    name: `gives the slot back once, ${TIMES} times: ${ending.it}`,
    run: () =>
      onBench(harness, AT_ONCE, async (bench) => {
        const held = new Held();
        await bench.serve(ending.handler?.(held) ?? held.handler, ending.options);
        for (let i = 0; i < TIMES; i += AT_ONCE) {
          await ending.play(bench, held);
          await bench.inflight(0);
        }
        await bench.ended({ [ending.outcome]: TIMES });
      }),
  };
}

/** A rejection that its framework drops: the slot comes back some time after the client has given up. */
function unanswered(harness: ServerAdapterHarness): SuiteCase {
  return {
    name: `gives the slot back: ${REJECTS}, and is never answered`,
    run: () =>
      onBench(harness, AT_ONCE, async (bench) => {
        const held = new Held();
        await bench.serve(
          async (req, res) => {
            void held.handler(req, res);
            await Promise.resolve();
            throw new Error('rejected by the suite');
          },
          { abandonedHoldMs: 300 },
        );
        const clients = await bench.clients(AT_ONCE);
        for (const client of clients) client.request('GET /');
        await held.started(AT_ONCE);
        for (const client of clients) client.destroy();
        await held.left();
        bench.clock.advanceMs(350);
        await bench.ended({ abandoned: AT_ONCE });
      }),
  };
}

/** How slots come back, for every way in which a call can end. */
export function endingCases(harness: ServerAdapterHarness): SuiteCase[] {
  const on = (name: string, limit: number, run: (bench: Bench) => Promise<void>): SuiteCase => ({
    name,
    run: () => onBench(harness, limit, run),
  });
  const { rejection } = harness;
  const listed = ENDINGS.filter(({ it }) => rejection === 'answered' || it !== REJECTS);
  return [
    ...listed.map((ending) => repeated(harness, ending)),
    ...(rejection === 'answered' ? [] : [unanswered(harness)]),

    on('gives the slot back when an answer of 64 MB is reset by its client', 5, async (bench) => {
      await bench.serve((_req, res) => {
        res.end(LARGE);
        return undefined;
      });
      for (let i = 0; i < 20; i++) {
        const client = await bench.client();
        client.request('GET /');
        await client.until(/200/);
        client.reset();
      }
      await bench.ended({ success: 20 });
    }),

    on("gives a large answer's slot back at once, though nobody reads it", 5, async (bench) => {
      await bench.serve((_req, res) => {
        res.end(LARGE);
        return undefined;
      });
      for (const client of await bench.clients(10)) client.pause().request('GET /');
      await eventually(
        () => bench.guard.snapshot().outcomes.success >= 5,
        'five answers to be written',
      );
      await bench.inflight(0);
    }),

    on(
      "gives a handler's slot back that never ends, some time after its client left",
      5,
      async (bench) => {
        const held = new Held();
        await bench.serve(held.handler, { abandonedHoldMs: 400 });
        const client = await bench.client();
        client.request('GET /');
        await held.started(1);
        client.destroy();
        await held.left();
        bench.clock.advanceMs(399);
        assert.equal(bench.guard.inflight, 1);
        bench.clock.advanceMs(51); // looked at every 50 ms
        await bench.ended({ abandoned: 1 });
        held.answer();
        await bench.ended({ abandoned: 1 });
        assert.equal(bench.clock.pendingTimers, 0);
      },
    ),

    on('holds it for twice the mean latency by default, and at most 5 s', 5, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler);
      for (const waitsMs of [5000, 600]) {
        const client = await bench.client();
        client.request('GET /');
        await held.started(1);
        client.destroy();
        await held.left();
        bench.clock.advanceMs(waitsMs - 60);
        assert.equal(bench.guard.inflight, 1);
        bench.clock.advanceMs(120);
        await bench.inflight(0);
        held.responses.length = 0;
        // from here on the mean is 300 ms
        bench.clock.advanceMs(2000);
        const answered = bench.get();
        await held.started(1);
        bench.clock.advanceMs(300);
        held.answer();
        await answered;
      }
      await bench.ended({ abandoned: 2, success: 2 });
    }),

    on(
      'shows the age of a handler that never answers, and gives up after maxHoldMs',
      5,
      async (bench) => {
        const held = new Held();
        await bench.serve(held.handler, { maxHoldMs: 3000 });
        for (const client of await bench.clients(5)) client.request('GET /');
        await held.started(5);
        bench.clock.advanceMs(2900);
        assert.equal(bench.guard.snapshot().oldestInflightMs, 2900);
        assert.equal((await bench.get()).status, 503);
        bench.clock.advanceMs(150);
        await bench.ended({ failure: 5 });
      },
    ),

    on('never gives up by itself unless told', 5, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler);
      (await bench.client()).request('GET /');
      await held.started(1);
      bench.clock.advanceMs(3_600_000);
      assert.equal(bench.guard.inflight, 1);
      held.answer();
      await bench.ended({ success: 1 });
    }),

    on(
      'ends a pipelined call when its handler has, not when its turn to be sent has come',
      5,
      async (bench) => {
        const first = new Held();
        await bench.start({
          limits: [bench.limit()],
          routes: {
            '/first': first.handler,
            '/second': (_req, res) => {
              res.end('second');
              return undefined;
            },
          },
        });
        const client = await bench.client();
        client.request('GET /first').request('GET /second');
        await first.started(1);
        await eventually(
          () => bench.guard.snapshot().outcomes.success === 1,
          'the second call to end before the first',
        );
        assert.equal(bench.guard.inflight, 1);
        assert.equal(client.text, '');
        first.answer('first');
        await client.until(/first[\s\S]*second/);
        await bench.ended({ success: 2 });
      },
    ),

    on('ends pipelined calls whose client leaves', 5, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler, { abandonedHoldMs: 200 });
      const client = await bench.client();
      client.request('GET /').request('GET /');
      await held.started(2);
      const { socket } = held.responses[0] as { socket: { destroyed: boolean } };
      client.destroy();
      await eventually(() => socket.destroyed, 'the server to see its client leave');
      bench.clock.advanceMs(400);
      await bench.ended({ abandoned: 2 });
    }),

    on(
      "serves Expect: 100-continue, and leaves the client's time out of the latency",
      5,
      async (bench) => {
        await bench.serve(async (req) => `got ${await readAll(req)}`);
        const client = await bench.client();
        client.request('POST /', 'Content-Length: 5', 'Expect: 100-continue');
        await client.until(/100 Continue/);
        await bench.inflight(1);
        await reading();
        bench.clock.advanceMs(900);
        client.send('01234');
        await client.until(/got 5/);
        await bench.ended({ success: 1 });
        assert.equal(bench.guard.snapshot().latency.maxUs < 900_000, true);
      },
    ),

    on('leaves a slow upload out of the latency', 5, async (bench) => {
      await bench.serve(async (req) => {
        const bytes = await readAll(req);
        bench.clock.advanceMs(30);
        return `got ${bytes}`;
      });
      const client = await bench.client();
      client.request('POST /', 'Content-Length: 3');
      await bench.inflight(1);
      for (const byte of '012') {
        await reading();
        bench.clock.advanceMs(700);
        client.send(byte);
      }
      await client.until(/got 3/);
      await bench.ended({ success: 1 });
      // all but the time that the loop may have been blind for, on a clock that stood still
      const { maxUs } = bench.guard.snapshot().latency;
      assert.equal(maxUs >= 29_000 && maxUs < 600_000, true, `latency ${maxUs} us`);
    }),

    on('counts our own slow reading as latency', 5, async (bench) => {
      await bench.serve(async (req) => {
        bench.clock.advanceMs(400); // the body is not asked for
        return `got ${await readAll(req)}`;
      });
      assert.equal((await bench.get('/', {}, 'POST', '0123456789')).text, 'got 10');
      await bench.ended({ success: 1 });
      const { maxUs } = bench.guard.snapshot().latency;
      assert.equal(maxUs >= 390_000, true, `latency ${maxUs} us`);
    }),

    on('answers 408 to an upload that takes too long, and goes on', 5, async (bench) => {
      let error: unknown;
      await bench.serve(
        async (req, res) => {
          await readAll(req).catch((e: unknown) => {
            error = e;
            res.end('too late'); // must hurt nobody
          });
          return undefined;
        },
        { bodyHoldMs: 2000 },
      );
      const client = await bench.client();
      client.request('POST /', 'Content-Length: 100').send('0123456789');
      await bench.inflight(1);
      await reading();
      bench.clock.advanceMs(1000);
      await reading();
      assert.equal(bench.guard.inflight, 1);
      bench.clock.advanceMs(1100);
      await client.until(/^HTTP\/1.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/);
      await client.untilClosed();
      await bench.ended({ ignored: 1 });
      await eventually(
        () => error !== undefined,
        () => "the handler's reading to end",
      );
    }),

    on('keeps uploads that do not come to their share of the slots', 12, async (bench) => {
      await bench.start({
        limits: [bench.limit()],
        routes: { '/': () => 'ok', '/upload': async (req) => `got ${await readAll(req)}` },
      });
      const clients = await bench.clients(12);
      for (const client of clients) client.request('POST /upload', 'Content-Length: 100').send('0');
      await eventually(
        () => clients.filter((client) => client.text.includes('503')).length === 6,
        'half of the uploads to be refused',
      );
      await bench.inflight(6);
      // a body that comes with its request is not held against anybody
      assert.equal((await bench.get('/upload', {}, 'POST', '01')).text, 'got 2');
      assert.equal((await bench.get()).status, 200);
      const { rejected, outcomes, revoked } = bench.guard.snapshot();
      assert.deepEqual([rejected.concurrency, revoked, outcomes.ignored], [6, 6, 0]);
    }),

    on('leaves one slot to other calls, however small the limit', 2, async (bench) => {
      await bench.start({
        limits: [bench.limit()],
        routes: { '/': () => 'ok', '/upload': async (req) => `got ${await readAll(req)}` },
      });
      const clients = await bench.clients(2);
      for (const client of clients) client.request('POST /upload', 'Content-Length: 100').send('0');
      await eventually(
        () => clients.filter((client) => client.text.includes('503')).length === 1,
        'one of the uploads to be refused',
      );
      assert.equal((await bench.get()).text, 'ok');
    }),

    on(
      'refuses no upload, times none out and cuts off no stream in a dry run',
      1,
      async (bench) => {
        bench.guard.configure({ dryRun: true });
        await bench.start({
          limits: [bench.limit({ bodyHoldMs: 1000, maxStreams: 0 })],
          routes: {
            '/upload': async (req) => `got ${await readAll(req)}`,
            '/events': (_req, res) => {
              res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
              return undefined;
            },
          },
        });
        const clients = await bench.clients(3);
        for (const client of clients) client.request('POST /upload', 'Content-Length: 2').send('0');
        await bench.inflight(3);
        await reading();
        bench.clock.advanceMs(3000);
        await reading();
        for (const client of clients) client.send('1');
        for (const client of clients) await client.until(/200 [\s\S]*got 2/);
        const stream = await bench.client();
        stream.request('GET /events');
        await stream.until(/data: 1/);
        bench.clock.advanceMs(50);
        await bench.ended({ success: 3, ignored: 1 });
        await reading();
        assert.equal(stream.closed, false);
      },
    ),

    on("gives a piped answer's slot back whose client does not read", 5, async (bench) => {
      const sources: Readable[] = [];
      await bench.serve(
        (_req, res) => {
          const source = Readable.from(chunks());
          sources.push(source);
          source.pipe(res);
          return undefined;
        },
        { drainHoldMs: 1000 },
      );
      const client = await bench.client();
      client.pause().request('GET /');
      await bench.inflight(1);
      await settled(sources);
      bench.clock.advanceMs(900);
      assert.equal(bench.guard.inflight, 1);
      bench.clock.advanceMs(200);
      await bench.ended({ success: 1 });
      assert.equal(bench.guard.snapshot().latency.maxUs <= 100_000, true);
    }),

    on('lets event streams leave the limiter, up to maxStreams', 5, async (bench) => {
      let ended = 0;
      await bench.start({
        limits: [bench.limit({ maxStreams: 8 })],
        routes: {
          '/': () => 'ok',
          '/events': (_req, res) => {
            res.writeHead(200, { 'Content-Type': 'text/event-stream' });
            res.write('data: 1\n\n');
            res.once('close', () => ended++);
            return undefined;
          },
        },
      });
      const streams = [];
      for (let i = 0; i < 8; i++) {
        const client = await bench.client();
        client.request('GET /events');
        await client.until(/data: 1/);
        bench.clock.advanceMs(50);
        await bench.inflight(0);
        streams.push(client);
      }
      assert.equal((await bench.get()).text, 'ok');
      const oneMore = await bench.client();
      oneMore.request('GET /events');
      await oneMore.until(/data: 1/);
      bench.clock.advanceMs(50);
      await oneMore.untilClosed();
      assert.equal(
        streams.every((client) => !client.closed),
        true,
      );
      // one leaves, and there is room again
      streams.pop()?.destroy();
      await eventually(() => ended === 2, 'the stream to end');
      const again = await bench.client();
      again.request('GET /events');
      await again.until(/data: 1/);
      bench.clock.advanceMs(50);
      await bench.ended({ success: 1, ignored: 9 });
      assert.equal(bench.guard.snapshot().rejected.concurrency, 1); // the one that was cut off
      await reading();
      assert.equal(again.closed, false);
    }),

    on("takes no event stream at its request's word", 5, async (bench) => {
      const held = new Held();
      await bench.serve(held.handler);
      (await bench.client()).request('GET /', 'Accept: text/event-stream');
      await held.started(1);
      bench.clock.advanceMs(500);
      assert.equal(bench.guard.inflight, 1);
      held.answer();
      await bench.ended({ success: 1 });
    }),

    on('gives no slot to an upgrade', 5, async (bench) => {
      await bench.serve(() => 'ok');
      bench.server.on('upgrade', (_req, socket) => {
        socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\nhello');
      });
      const client = await bench.client();
      client.request('GET /', 'Connection: Upgrade', 'Upgrade: websocket');
      await client.until(/hello/);
      await bench.ended({});
      assert.equal(bench.guard.snapshot().admitted, 0);
    }),

    on('counts as failure what the user says', 5, async (bench) => {
      await bench.serve(
        (_req, res) => {
          res.writeHead(404).end();
          return undefined;
        },
        { isFailure: (_req, res) => res.statusCode === 404 },
      );
      await bench.get();
      await bench.ended({ failure: 1 });
    }),
  ];
}

/** Lets a handler begin to read, and what was sent arrive. */
async function reading(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Waits until a pipe stands still. */
async function settled(sources: readonly Readable[]): Promise<void> {
  await eventually(
    () => sources.length > 0 && sources.every((source) => source.isPaused()),
    'the pipe to stand still',
  );
  await reading();
}

/** Without end. */
function* chunks(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(64 * 1024);
}
