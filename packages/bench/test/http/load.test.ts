import { ok, startTestServer, status, type TestServer } from '@elimit/testkit';
import { afterEach, expect, it } from '@jest/globals';
import { type LoadOptions, offerInTurns, offerLoad } from '../../src/http/load.js';

const servers: TestServer[] = [];

afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));

it('offers loads by turns, another one first each time, and the same arrivals to all of them', async () => {
  const turns: string[] = [];
  const start = async (name: string, answer: typeof ok): Promise<LoadOptions> => {
    const server = await startTestServer((req, res) => {
      if (turns.at(-1) !== name) turns.push(name);
      answer(req, res);
    });
    servers.push(server);
    return {
      port: server.port,
      client: 'patient',
      rate: 400,
      warmUpMs: 25,
      durationMs: 75,
      deadlineMs: 10_000, // however slow the machine is
    };
  };
  const [a = [], b = []] = await offerInTurns(
    [await start('a', ok), await start('b', status(503))],
    3,
  );
  expect(turns).toEqual(['a', 'b', 'a', 'b']); // a b, b a, a b
  const offered = a.map((turn) => turn.offered);
  expect(b.map((turn) => turn.offered)).toEqual(offered);
  expect(a.map(({ inTime, errors }) => [inTime, errors])).toEqual(offered.map((n) => [n, 0]));
  expect(b.map(({ refused, errors }) => [refused, errors])).toEqual(offered.map((n) => [n, 0]));
  expect(new Set(offered).size).toBeGreaterThan(1); // other arrivals in each turn
});

it('counts what was answered while it measured, also of what was sent before', async () => {
  const waiting: (() => void)[] = [];
  let seen = 0;
  const server = await startTestServer((req, res) => {
    seen++;
    if (seen <= 9) waiting.push(() => ok(req, res));
    else status(503)(req, res);
    if (seen === 12) for (const answer of waiting) answer();
  });
  servers.push(server);
  const result = await offerLoad({
    port: server.port,
    client: 'patient',
    rate: 20,
    arrivals: 'even',
    warmUpMs: 500, // nine fall due before it ends
    durationMs: 1500,
    deadlineMs: 10_000,
  });
  expect(result).toMatchObject({ inTime: 0, perSecond: 9 / 1.5 });
  expect(result.refused).toBe(result.offered);
});
