import { ok, startTestServer, status, type TestServer } from '@elimit/testkit';
import { afterEach, expect, it } from '@jest/globals';
import { type LoadOptions, offerInTurns } from '../../src/http/load.js';

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
  const [a, b] = await offerInTurns([await start('a', ok), await start('b', status(503))], 3);
  expect(turns).toEqual(['a', 'b', 'a', 'b']); // a b, b a, a b
  expect(a?.seconds).toBeCloseTo(0.225, 9);
  expect(a).toMatchObject({ offered: b?.offered, inTime: a?.offered, refused: 0, errors: 0 });
  expect(b).toMatchObject({ refused: b?.offered, inTime: 0, errors: 0 });
  expect(a?.offered).toBeGreaterThan(30);
});
