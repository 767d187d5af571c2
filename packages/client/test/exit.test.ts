import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestServer } from '@elimit/testkit';
import { expect, it } from '@jest/globals';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Runs a script in a process of its own; fails if that does not end by itself. */
const script = (code: string) =>
  run(
    process.execPath,
    ['-C', '@elimit/source', '--import', 'tsx', '--input-type=module', '-e', code],
    {
      cwd: root,
      timeout: 20_000,
    },
  );

it('lets a process end by itself, channels open, a node isolated and its health check running', async () => {
  const server = await startTestServer();
  try {
    const { stdout } = await script(`
      import { createChannel, dnsNaming } from '@elimit/client';
      import http from 'node:http';
      createChannel({ naming: dnsNaming('http://localhost:1') });
      const channel = createChannel({
        nodes: ['${server.url}', 'http://127.0.0.1:1'],
        healthCheck: { intervalMs: 50 },
        timeoutMs: 5000,
        connectTimeoutMs: 1000,
        backupRequestMs: 100,
      });
      const get = ({ endpoint, agent, signal }) => new Promise((resolve, reject) => {
        http.get(endpoint.url, { agent, signal }, (answer) => answer.resume().on('end', () => resolve(answer.statusCode))).on('error', reject);
      });
      const ends = [];
      for (let i = 0; i < 4; i++) ends.push(await channel.execute(get, { method: 'GET' }));
      console.log(JSON.stringify([ends, channel.endpoints().map(({ state }) => state)]));
    `);
    expect(JSON.parse(stdout)).toEqual([
      [200, 200, 200, 200],
      ['closed', 'open'],
    ]);
  } finally {
    await server.stop();
  }
}, 30_000);
