import { execFileSync } from 'node:child_process';
import { linkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  dnsNaming,
  fileNaming,
  type Naming,
  type NamingListener,
  type NodeValue,
  NoEndpointError,
} from '@elimit/client';
import type { ElimitEvent } from '@elimit/core';
import { settle, VirtualClock } from '@elimit/testkit';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { endOf, fail, virtualChannel } from './support/virtual-channel.js';

const originsOf = (channel: { endpoints(): { origin: string; weight: number }[] }) =>
  channel.endpoints().map(({ origin, weight }) => `${origin}*${weight}`);
const warnings = (events: readonly ElimitEvent[]) =>
  events.flatMap((event) => (event.type === 'warning' ? [event.code] : []));

/** A naming service that a test drives by hand. */
function manual(first?: readonly NodeValue[]) {
  const state = {
    stopped: 0,
    update: (() => {}) as NamingListener['update'],
    failed: (() => {}) as NamingListener['failed'],
  };
  const naming: Naming = {
    watch(listener) {
      state.update = (nodes) => listener.update(nodes);
      state.failed = (error) => listener.failed(error);
      if (first !== undefined) listener.update(first);
      return () => {
        state.stopped += 1;
      };
    },
  };
  return { naming, state };
}

describe('a list that changes', () => {
  it('keeps what stays, with its history and a new weight, and lets go of what leaves', async () => {
    const { naming, state } = manual(['http://a', 'http://b']);
    const { call, channel, registry } = virtualChannel('', { naming });
    await call();
    await call();
    state.update([{ url: 'http://b', weight: 3 }, 'http://c']);
    expect(originsOf(channel)).toEqual(['http://b*3', 'http://c*1']);
    expect(channel.endpoints().map(({ calls }) => calls)).toEqual([1, 0]);
    expect(registry.sources()).toHaveLength(2);
    channel.close();
    expect(state.stopped).toBe(1);
    expect(registry.sources()).toHaveLength(0);
    state.update(['http://d']); // told after the end: nothing happens
    expect(registry.sources()).toHaveLength(0);
  });

  it('lets calls in flight on a node that leaves finish', async () => {
    const { naming, state } = manual(['http://a']);
    const { call, nodes, channel } = virtualChannel('', { naming });
    let answerNow = (() => {}) as (from: string) => void;
    nodes.a = () => new Promise<string>((resolve) => (answerNow = resolve));
    const end = call();
    state.update(['http://b']);
    answerNow('from a');
    expect(await end).toBe('from a');
    expect(await call()).toBe('b');
    channel.close();
  });

  it.each([{ bad: [] }, { bad: ['nonsense'] }])(
    'stands when the next one is bad ($bad), with one warning for each spell',
    ({ bad }) => {
      const { naming, state } = manual(['http://a']);
      const { channel, events } = virtualChannel('', { naming });
      state.update(bad);
      state.failed('again');
      expect(originsOf(channel)).toEqual(['http://a*1']);
      expect(warnings(events)).toEqual(['WARN_NAMING']);
      state.update(['http://b']);
      state.failed(new Error('once more'));
      expect(warnings(events)).toEqual(['WARN_NAMING', 'WARN_NAMING']);
      channel.close();
    },
  );

  it('ends the health check of an isolated node that leaves', async () => {
    const { naming, state } = manual(['http://a', 'http://b']);
    const { call, nodes, clock, checks, healthy, channel } = virtualChannel('', { naming });
    healthy.a = false;
    nodes.a = fail('ECONNREFUSED');
    await call();
    await clock.advanceMsAsync(100);
    expect(checks).toEqual(['a']);
    state.update(['http://b']);
    await clock.advanceMsAsync(60_000);
    expect(checks).toEqual(['a']);
    expect(clock.pendingTimers).toBe(0);
    channel.close();
  });
});

describe('nodes that are not known yet', () => {
  it('make calls wait, inside their own time', async () => {
    const { naming, state } = manual();
    const { call, clock } = virtualChannel('', { naming });
    const end = call();
    await clock.advanceMsAsync(300);
    state.update(['http://a']);
    expect(await end).toBe('a');
  });

  it('fail calls when their time is over, with the reason', async () => {
    const { naming, state } = manual();
    const { call, clock, channel } = virtualChannel('', { naming, name: 'search' });
    const end = call();
    state.failed(new Error('no such name'));
    await clock.advanceMsAsync(500);
    const error = await endOf(end);
    expect(NoEndpointError.is(error)).toBe(true);
    expect(error).toMatchObject({
      message: 'channel search knows no endpoint',
      cause: { message: 'no such name' },
    });
    channel.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a file', () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'elimit-'));
    path = join(folder, 'nodes');
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Lets the watcher look once: it reads real files, on virtual time. */
  async function look(clock: VirtualClock, until: () => boolean): Promise<void> {
    for (let i = 0; i < 200 && !until(); i++) {
      clock.advanceMs(1000);
      await settle();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  it('gives its nodes at once, and follows when it is written or replaced', async () => {
    await writeFile(path, '# ours\nhttp://a 2\n\n  http://b   # spare\n');
    const { channel, clock, events } = virtualChannel('', { naming: fileNaming(path) });
    expect(originsOf(channel)).toEqual(['http://a*2', 'http://b*1']);

    await writeFile(path, 'http://a\nhttp://c:81\n');
    await look(clock, () => channel.endpoints()[1]?.origin === 'http://c:81');
    expect(originsOf(channel)).toEqual(['http://a*1', 'http://c:81*1']);

    await writeFile(`${path}.new`, 'http://dd\n');
    await rename(`${path}.new`, path);
    await look(clock, () => channel.endpoints().length === 1);
    expect(originsOf(channel)).toEqual(['http://dd*1']);

    await writeFile(path, 'http://ee heavy\n');
    await look(clock, () => events.length > 0);
    expect(events).toMatchObject([
      {
        type: 'warning',
        code: 'WARN_NAMING',
        message: expect.stringMatching(/weight must be .* got NaN/),
      },
    ]);

    await rm(path);
    await look(clock, () => false);
    expect(originsOf(channel)).toEqual(['http://dd*1']);
    expect(events).toHaveLength(1);

    channel.close();
    await look(clock, () => clock.pendingTimers === 0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('that hangs is told once, and waited for: no further look takes a thread', async () => {
    await writeFile(path, 'http://a\n');
    const { channel, clock, events } = virtualChannel('', { naming: fileNaming(path) });
    const pipe = `${path}.pipe`; // opening one waits for its writer
    execFileSync('mkfifo', [pipe]);
    linkSync(pipe, `${path}.new`);
    await rename(`${path}.new`, path);
    await look(clock, () => events.length > 0);
    expect(events).toMatchObject([
      { message: expect.stringMatching(/reading .* took over 10000 ms/) },
    ]);
    for (let i = 0; i < 100; i++) {
      clock.advanceMs(1000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(clock.pendingTimers).toBe(0);

    await writeFile(`${path}.new`, 'http://cc\n');
    await rename(`${path}.new`, path);
    writeFileSync(pipe, 'http://b\n');
    await look(clock, () => originsOf(channel)[0] === 'http://b*1');
    await look(clock, () => originsOf(channel)[0] === 'http://cc*1');
    expect(originsOf(channel)).toEqual(['http://cc*1']);
    channel.close();
  });

  it('that is bad at first is an error at once', async () => {
    await writeFile(path, '# nobody yet\n');
    expect(() => virtualChannel('', { naming: fileNaming(path) })).toThrow(
      /nodes must name at least one node/,
    );
  });
});

describe('DNS', () => {
  it('makes a node of each address, and asks again', async () => {
    const answers = [
      ['10.0.0.2', '10.0.0.1', '10.0.0.1'],
      ['10.0.0.1', '10.0.0.2'],
      ['10.0.0.1', '::1'],
    ];
    const asked: string[] = [];
    const naming = dnsNaming('http://search.internal:8080', {
      resolve: (hostname) => {
        asked.push(hostname);
        const next = answers.shift();
        return next === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(next);
      },
    });
    const { channel, clock, events, call, attempts, registry } = virtualChannel('', { naming });
    await call();
    expect(attempts[0]?.headers.host).toBe('search.internal:8080');
    expect(originsOf(channel)).toEqual(['http://10.0.0.1:8080*1', 'http://10.0.0.2:8080*1']);
    const before = registry.sources();
    await clock.advanceMsAsync(5000);
    expect(registry.sources()).toEqual(before); // the same, in another order
    await clock.advanceMsAsync(5000);
    expect(originsOf(channel)).toEqual(['http://10.0.0.1:8080*1', 'http://[::1]:8080*1']);
    await clock.advanceMsAsync(5000);
    expect(originsOf(channel)).toHaveLength(2);
    expect(warnings(events)).toEqual(['WARN_NAMING']);
    expect(asked).toHaveLength(4);
    channel.close();
    await clock.advanceMsAsync(60_000);
    expect(asked).toHaveLength(4);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps the last list when a name has no address any more', async () => {
    const answers = [['10.0.0.1'], []];
    const naming = dnsNaming('https://search.internal', {
      intervalMs: 1000,
      resolve: () => Promise.resolve(answers.shift() ?? []),
    });
    const { channel, clock, events } = virtualChannel('', { naming });
    await clock.advanceMsAsync(2000);
    expect(originsOf(channel)).toEqual(['https://10.0.0.1*1']);
    expect(events).toMatchObject([
      { message: expect.stringMatching(/search.internal has no address/) },
    ]);
    channel.close();
  });

  it('asks again after a look-up that never ends, and drops what comes of it', async () => {
    const answers: Promise<string[]>[] = [Promise.resolve(['10.0.0.1'])];
    let answerLate = (_addresses: string[]): void => {};
    answers.push(
      new Promise((resolve) => {
        answerLate = resolve;
      }),
      Promise.resolve(['10.0.0.2']),
    );
    let asked = 0;
    const naming = dnsNaming('http://search.internal', {
      resolve: () => answers[asked++] ?? Promise.resolve(['10.0.0.2']),
    });
    const { channel, clock, events } = virtualChannel('', { naming });
    await clock.advanceMsAsync(5000); // the second one begins
    await clock.advanceMsAsync(9999);
    expect([asked, events]).toEqual([2, []]);
    await clock.advanceMsAsync(1);
    expect(events).toMatchObject([
      {
        code: 'WARN_NAMING',
        message: expect.stringMatching(/the look-up of search.internal took over 10000 ms/),
      },
    ]);
    answerLate(['10.0.0.9']);
    await clock.advanceMsAsync(5000);
    expect([asked, originsOf(channel)]).toEqual([3, ['http://10.0.0.2*1']]);
    channel.close();
    await clock.advanceMsAsync(10_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each<{ it: string; found: unknown; says: string }>([
    { it: 'a string', found: '127.0.0.1', says: 'an array of addresses, got "127.0.0.1"' },
    { it: 'nothing', found: undefined, says: 'an array of addresses, got undefined' },
    { it: 'null in the list', found: [null], says: 'IP addresses without a zone, got null' },
    { it: 'no such address', found: ['999.1.1.1'], says: 'got "999.1.1.1"' },
    { it: 'a host with a path', found: ['evil.test/x'], says: 'got "evil.test/x"' },
    { it: 'an address with more behind', found: ['127.0.0.1@x'], says: 'got "127.0.0.1@x"' },
    { it: 'an address with a zone', found: ['10.0.0.1', 'fe80::1%lo'], says: 'got "fe80::1%lo"' },
  ])('takes $it for a failed look-up', async ({ found, says }) => {
    const naming = dnsNaming('http://search.internal', { resolve: () => found as never });
    const { channel, clock, events } = virtualChannel('', { naming });
    await clock.advanceMsAsync(1);
    expect(channel.endpoints()).toEqual([]);
    expect(events).toMatchObject([
      { code: 'WARN_NAMING', message: expect.stringContaining(says) as unknown },
    ]);
    channel.close();
  });

  it('asks the system unless told otherwise', async () => {
    const { channel, clock, call } = virtualChannel('', {
      naming: dnsNaming('http://localhost:9'),
    });
    const end = call();
    for (let i = 0; i < 100 && channel.endpoints().length === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await end).toMatch(/127\.0\.0\.1|\[::1\]/);
    channel.close();
    expect(clock.pendingTimers).toBe(0);
  });
});
