import { strict as assert } from 'node:assert';
import type { RateQuota, RateStoreSession, StoreAnswer } from '@elimit/core';
import { registerChecks } from './checks.js';

/** A rate store that joins the suite. */
export interface RateStoreSubject {
  /** Opens a session on the one store of the test, under a limiter's name. Sessions of one name share their keys. */
  open(name: string): RateStoreSession;
  /** Checks that it does not pass, by name, each with the reason why that is right. */
  readonly except?: Readonly<Record<string, string>>;
}

/** So slow that no test waits long enough for a token. */
const SLOW: RateQuota = { rate: 0.001, burst: 10 };
let runs = 0;

/** Each check has keys of its own, since a store may outlive a run. */
function fresh(): string {
  return `suite ${process.pid}-${runs++}`;
}

/**
 * What every shared store has to keep, whatever it is made of. One line to join, with the test function of any runner:
 *
 * ```ts
 * describe('my store', () => rateStoreSuite(it, { open: (name) => store.open({ name, … }) }));
 * ```
 */
export function rateStoreSuite(
  it: (name: string, run: () => Promise<void>) => void,
  subject: RateStoreSubject,
): void {
  registerChecks(it, checksOf(subject), subject.except);
}

async function take(
  session: RateStoreSession,
  key: string,
  n: number,
  quota = SLOW,
): Promise<StoreAnswer> {
  return session.take(key, n, quota);
}

function checksOf(subject: RateStoreSubject): Record<string, () => Promise<void>> {
  const open = (of: string): RateStoreSession => subject.open(of);
  return {
    async 'grants the burst and refuses the rest, with the wait for it'() {
      const session = open(fresh());
      assert.equal((await take(session, 'a', 7)).granted, true);
      const refused = await take(session, 'a', 4);
      assert.equal(refused.granted, false);
      // three are there and four are asked: a thousand seconds, less what the test took
      assert.ok(refused.waitUs > 990e6 && refused.waitUs <= 1000e6, `${refused.waitUs} us`);
      assert.equal((await take(session, 'a', 3)).granted, true);
      await session.close();
    },
    async 'takes nothing with a refusal'() {
      const session = open(fresh());
      await take(session, 'a', 9.5);
      for (let i = 0; i < 5; i++) assert.equal((await take(session, 'a', 1)).granted, false);
      const { granted, remaining } = await take(session, 'a', 0.5);
      assert.equal(granted, true);
      assert.ok(remaining >= 0 && remaining < 0.1, `${remaining} left`);
      await session.close();
    },
    async 'says never to more than the burst, and to anything while the rate is 0'() {
      const session = open(fresh());
      const never = Number.POSITIVE_INFINITY;
      assert.equal((await take(session, 'a', 11)).waitUs, never);
      const stopped = { rate: 0, burst: 2 };
      assert.equal((await take(session, 'b', 2, stopped)).granted, true);
      assert.equal((await take(session, 'b', 1, stopped)).waitUs, never);
      await session.close();
    },
    async 'keeps keys apart, odd ones included'() {
      const session = open(fresh());
      const keys = ['', 'a', 'a:b', 'a\0b', '__proto__', '{a}', 'ä', ' ', 'x'.repeat(10_000)];
      for (const key of keys) assert.equal((await take(session, key, 10)).granted, true, key);
      for (const key of keys) assert.equal((await take(session, key, 1)).granted, false, key);
      await session.close();
    },
    async 'has sessions of one name share, and of two names not'() {
      const shared = fresh();
      const [one, two, other] = [open(shared), open(shared), open(fresh())];
      assert.equal((await take(one, 'a', 6)).granted, true);
      assert.equal((await take(two, 'a', 6)).granted, false);
      assert.equal((await take(other, 'a', 6)).granted, true);
      await Promise.all([one, two, other].map((session) => session.close()));
    },
    async 'grants exactly the burst to a crowd'() {
      const shared = fresh();
      const sessions = [open(shared), open(shared), open(shared)];
      const answers = await Promise.all(
        Array.from({ length: 300 }, (_, i) => take(sessions[i % 3] as RateStoreSession, 'a', 1)),
      );
      assert.equal(answers.filter(({ granted }) => granted).length, 10);
      await Promise.all(sessions.map((session) => session.close()));
    },
    async 'takes refunds, up to the burst and not beyond'() {
      const session = open(fresh());
      await take(session, 'a', 10);
      session.refund('a', 4, SLOW);
      await untilGranted(() => take(session, 'a', 4));
      session.refund('a', 100, SLOW);
      await untilGranted(() => take(session, 'a', 10));
      assert.equal((await take(session, 'a', 1)).granted, false);
      await session.close();
    },
    async 'makes a key new on reset'() {
      const session = open(fresh());
      await take(session, 'a', 10);
      await session.reset('a');
      assert.equal((await take(session, 'a', 10)).granted, true);
      await session.close();
    },
    async 'follows a change of quota'() {
      const session = open(fresh());
      await take(session, 'a', 4);
      const smaller = await take(session, 'a', 1, { rate: 0.001, burst: 3 });
      assert.ok(smaller.granted && Math.abs(smaller.remaining - 2) < 0.1, 'clipped to the burst');
      const larger = await take(session, 'a', 1, { rate: 0.001, burst: 100 });
      assert.ok(larger.granted && Math.abs(larger.remaining - 1) < 0.1, 'growing adds nothing');
      await session.close();
    },
    async 'is probed without taking anything, and closed twice'() {
      const session = open(fresh());
      await session.probe();
      assert.ok(session.holders >= 1);
      assert.equal((await take(session, 'a', 10)).granted, true);
      await session.close();
      await session.close();
    },
  };
}

/** Refunds are best effort and tell nothing: asked until they have come. */
async function untilGranted(ask: () => Promise<StoreAnswer>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if ((await ask()).granted) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail('the refund has not come');
}
