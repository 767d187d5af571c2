import { createChannel } from '@elimit/client';
import { startTestServer } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { httpTry } from './support/http-try.js';

it('smoke', async () => {
  const s = await startTestServer();
  const c = createChannel({ nodes: [s.url], connectionGroup: 'smoke' });
  const a = await c.execute(httpTry());
  expect(a.status).toBe(200);
  console.log(c.endpoints(), s.seen);
  c.close();
  await s.stop();
});
