/**
 * Processor time that `rateLimit` adds to a request through Express, against express-rate-limit. On the built
 * packages:
 *
 *   npm run -s bench:rate-express -- [--json FILE]
 *
 * One server process per arm, all up at once and asked in turn, in small shares, so that noise falls on all alike.
 */
import { spawn } from 'node:child_process';
import { Agent, get } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CommandLine } from '../command-line.js';
import { holds, markLines, provenanceLines, provenanceOf, saveReport } from '../report.js';

const ARMS = [
  'bare',
  'elimit',
  'elimit without headers',
  'elimit, refusing',
  'express-rate-limit',
  'express-rate-limit, default headers',
  'express-rate-limit, refusing',
] as const;
type Arm = (typeof ARMS)[number];
const [ROUNDS, PER_ROUND, CONNECTIONS] = [15, 1000, 10];

const { values } =
  new CommandLine(`npm run -s bench:rate-express -- [options]   what a rate limit adds to a request, beside express-rate-limit; exits 1 if a mark is not held
  --json FILE   the report; beside it, with the ending .txt, what was printed
`).read({ options: { json: { type: 'string' } } });
const provenance = provenanceOf({
  command: 'npm run -s bench:rate-express --',
  sources: ['packages/core/src', 'packages/node-http/src', 'packages/express/src'],
  packages: ['express', 'express-rate-limit'],
});
const script = fileURLToPath(new URL('./express-arm.mjs', import.meta.url));
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

interface Server {
  readonly arm: Arm;
  readonly port: number;
  cpuUs(): Promise<number>;
  end(): void;
  readonly perRequestUs: number[];
}

async function start(arm: Arm): Promise<Server> {
  const child = spawn(process.execPath, [script, arm], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const port = Number((await lines.next()).value);
  return {
    arm,
    port,
    async cpuUs() {
      child.stdin.write('cpu\n');
      return Number((await lines.next()).value);
    },
    end: () => child.stdin.end(),
    perRequestUs: [],
  };
}

function ask(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent }, (answer) => {
      answer.resume().once('end', resolve);
    }).once('error', reject);
  });
}

async function load(port: number, requests: number): Promise<void> {
  let left = requests;
  const connection = async (): Promise<void> => {
    while (left-- > 0) await ask(port);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
}

const servers: Server[] = [];
for (const arm of ARMS) servers.push(await start(arm));
for (const { port } of servers) await load(port, 2000);
for (let round = 0; round < ROUNDS; round++) {
  for (const server of servers) {
    const before = await server.cpuUs();
    await load(server.port, PER_ROUND);
    server.perRequestUs.push(((await server.cpuUs()) - before) / PER_ROUND);
  }
}
for (const server of servers) server.end();
agent.destroy();

/** The lower quartile: noise only ever adds. */
const typical = (all: number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 4)] as number;
const us = Object.fromEntries(
  servers.map(({ arm, perRequestUs }) => [arm, typical(perRequestUs)]),
) as Record<Arm, number>;
const over = (arm: Arm): number => us[arm] - us.bare;
const marks = {
  'added ÷ what express-rate-limit adds with the same draft of headers': {
    ratio: over('elimit') / over('express-rate-limit'),
    most: 0.25,
  },
  'added without headers ÷ the same': {
    ratio: over('elimit without headers') / over('express-rate-limit'),
  },
  'a refusal ÷ a bare answer': { ratio: us['elimit, refusing'] / us.bare, most: 0.6 },
};
const printed = [
  ...provenanceLines(provenance),
  '',
  ...ARMS.map(
    (arm) =>
      `${arm.padEnd(38)} ${us[arm].toFixed(1).padStart(7)} us  ${over(arm).toFixed(1).padStart(7)} over bare`,
  ),
  ...markLines(marks),
];
console.log(printed.join('\n'));
if (values.json !== undefined) saveReport(values.json, { ...provenance, us, marks }, printed);
process.exitCode = Object.values(marks).every(holds) ? 0 : 1;
