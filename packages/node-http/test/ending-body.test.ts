import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { settle, VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { type BodyWatch, bodyWatchOf } from '../src/ending-body.js';

/** A request whose body is pushed by the test, as the parser would. */
function upload(blindUs = 0): { req: IncomingMessage; body: BodyWatch; clock: VirtualClock } {
  const req = new IncomingMessage(new Socket());
  req.headers = { 'content-length': '30' };
  const clock = new VirtualClock();
  const body = bodyWatchOf(req, clock, () => blindUs) as BodyWatch;
  return { req, body, clock };
}

it('times each wait of a flowing reader, and not its work', async () => {
  const { req, body, clock } = upload();
  clock.advanceMs(5); // nobody reads yet
  req.on('data', () => clock.advanceMs(7));
  await settle();
  clock.advanceMs(100);
  req.push('0123456789');
  clock.advanceMs(200);
  req.push('0123456789');
  clock.advanceMs(300);
  expect(body.stalledUs(clock.nowUs())).toBe(600_000); // 100 + 200 + the 300 of the present wait
  req.push('0123456789');
  req.push(null);
  clock.advanceMs(400);
  expect(body.complete).toBe(true);
  expect(body.stalledUs(clock.nowUs())).toBe(600_000);
});

it('times the waits of a reader that iterates', async () => {
  const { req, body, clock } = upload();
  const read = (async () => {
    for await (const _ of req) clock.advanceMs(7);
  })();
  await settle();
  clock.advanceMs(100);
  req.push('0123456789');
  await settle();
  body.look(); // the sweep's: this reader had not come back for more by the end of the push
  clock.advanceMs(50);
  req.push(null);
  await read;
  expect(body.stalledUs(clock.nowUs())).toBe(150_000);
});

it('counts no pause of ours', async () => {
  const { req, body, clock } = upload();
  req.on('data', () => req.pause());
  await settle();
  req.push('0123456789'); // nothing was waited for until here, and nothing is left to read
  clock.advanceMs(500);
  body.look();
  clock.advanceMs(500);
  expect(body.stalledUs(clock.nowUs())).toBe(0);
});

it('leaves out the time in which the loop did not look: the chunk may have lain there', async () => {
  const { req, body, clock } = upload(30_000);
  req.on('data', () => {});
  await settle();
  clock.advanceMs(100);
  req.push('0123456789');
  expect(body.stalledUs(clock.nowUs())).toBe(70_000);
  clock.advanceMs(20); // shorter than the loop's own absence
  req.push('0123456789');
  expect(body.stalledUs(clock.nowUs())).toBe(70_000);
});

it.each<{ it: string; headers: IncomingMessage['headers'] }>([
  { it: 'without a body', headers: {} },
  { it: 'with an empty one', headers: { 'content-length': '0' } },
])('does not watch a request $it', ({ headers }) => {
  const req = new IncomingMessage(new Socket());
  req.headers = headers;
  expect(bodyWatchOf(req, new VirtualClock(), () => 0)).toBeUndefined();
});
