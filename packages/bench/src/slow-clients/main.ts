// What fifty slow clients leave to the others, as a ratio of what these get without them, in one run.
// The first second counts against us: that long a piped answer that nobody reads keeps its slot.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createGuard } from '@elimit/core';
import { limit } from '@elimit/express';
import express from 'express';
import { CommandLine } from '../command-line.js';

const SLOW_CLIENTS = 50;
const PACE_MS = 5;
const LARGE = Buffer.alloc(8 * 1024 * 1024);
const WANTED_RATIO = 0.9;

const command =
  new CommandLine(`npm run -s bench:slow-clients -- [options]   what fifty slow clients leave to the others; exits 1 if under ${WANTED_RATIO}
  --seconds N   how long the others come (default: 15)
`);
const { values } = command.read({ options: { seconds: { type: 'string', default: '15' } } });
const seconds = command.number('seconds', values.seconds, 1, 3600);
const others = Math.round((seconds * 1000) / PACE_MS);

const clients = fileURLToPath(new URL('clients.mjs', import.meta.url));
const run = promisify(execFile);

function* withoutEnd(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(64 * 1024);
}

/** How many of the other clients' requests were served, beside slow ones of a kind. */
async function servedBeside(kind: string, slowClients: number): Promise<number> {
  const app = express();
  app.use(limit(createGuard({ limit: 20, name: 'slow-clients', registry: false })));
  app.post('/upload', express.raw({ limit: '1mb' }), (_req, res) => void res.send('ok'));
  app.get('/large', (_req, res) => void res.end(LARGE));
  app.get('/piped', (_req, res) => {
    Readable.from(withoutEnd()).pipe(res);
  });
  app.get('/', (_req, res) => {
    setTimeout(() => res.send('ok'), 2);
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const args = [port, kind, slowClients, others, PACE_MS].map(String);
    const { stdout } = await run(process.execPath, [clients, ...args]);
    return Number(stdout);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

let holds = true;
for (const kind of ['trickle', 'large', 'piped']) {
  const alone = await servedBeside(kind, 0);
  const beside = await servedBeside(kind, SLOW_CLIENTS);
  const ratio = beside / alone;
  holds &&= ratio >= WANTED_RATIO;
  console.log(
    `${kind.padEnd(8)} ${others} offered, ${alone} served alone, ${beside} beside ${SLOW_CLIENTS} slow clients: ${ratio.toFixed(3)}`,
  );
}
console.log(holds ? `all at least ${WANTED_RATIO}` : `not all reach ${WANTED_RATIO}`);
process.exitCode = holds ? 0 : 1;
