// Three backend processes behind one axios instance: one is stopped, one hangs, both return. What do callers see?
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { breaker, type Channel, createChannel } from '@elimit/axios';
import type { ElimitEvent } from '@elimit/core';
import axios, { type AxiosInstance } from 'axios';
import { CommandLine } from '../command-line.js';

const command =
  new CommandLine(`npm run demo -- outbound [options]   three backends behind a client; one stops, one hangs, both return
  --rate N   calls per second (default: 100)
  --json     the figures as JSON, nothing else
`);

/** What happens, and when, in milliseconds from the start. */
const STEPS = [
  { atMs: 3000, say: 'B is stopped', do: ({ b }: Backends) => b.stop() },
  { atMs: 7000, say: 'C hangs', do: ({ c }: Backends) => c.signal('SIGSTOP') },
  { atMs: 12_000, say: 'B is back', do: ({ b }: Backends) => b.start() },
  { atMs: 16_000, say: 'C goes on', do: ({ c }: Backends) => c.signal('SIGCONT') },
] as const;
const END_MS = 24_000;
const TABLE_EVERY_MS = 500;
/** Of a call, all its tries included. */
const TIMEOUT_MS = 2000;
const TRY_TIMEOUT_MS = 400;
const HEALTH_INTERVAL_MS = 1000;
/** Verdict: at most one caller in a thousand sees an error. Without a client, one of three fails for as long as one of three is down. */
const MAX_ERROR_RATIO = 0.001;

interface Backends {
  readonly a: Backend;
  readonly b: Backend;
  readonly c: Backend;
}

/** A process that can be stopped and started again on the same port. */
class Backend {
  port = 0;
  #child: ChildProcess | undefined;

  constructor(readonly name: string) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const path = fileURLToPath(new URL('./outbound-backend.mjs', import.meta.url));
    const child = fork(path, [String(this.port)], { execArgv: [] });
    this.#child = child;
    const [port] = (await once(child, 'message')) as [number];
    this.port = port;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    child.kill('SIGKILL'); // also ends one that hangs
    await once(child, 'exit');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }
}

/** What callers saw. */
interface Tally {
  calls: number;
  errors: number;
  readonly byCode: Record<string, number>;
  readonly latenciesMs: number[];
}

/** Isolations and returns of one backend, in milliseconds from the start. */
interface History {
  readonly name: string;
  readonly isolatedMs: number[];
  readonly returnedMs: number[];
}

export interface OutboundFigures {
  readonly calls: number;
  readonly errors: number;
  readonly byCode: Record<string, number>;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly backends: readonly (History & { readonly calls: number; readonly state: string })[];
  readonly problems: readonly string[];
}

/** Runs the demo; gives the exit code: 0 if the verdict is good, 1 if not. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = command.read({
    args: [...args],
    options: {
      rate: { type: 'string', default: '100' },
      json: { type: 'boolean', default: false },
    },
  });
  const rate = command.number('rate', values.rate, 10, 1000);
  const figures = await outboundDemo({ rate, json: values.json });
  if (values.json) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
  else process.stdout.write(verdict(figures));
  return figures.problems.length === 0 ? 0 : 1;
}

async function outboundDemo({
  rate,
  json,
}: {
  rate: number;
  json: boolean;
}): Promise<OutboundFigures> {
  const backends = { a: new Backend('A'), b: new Backend('B'), c: new Backend('C') };
  const all = Object.values(backends);
  const stopAll = () => Promise.all(all.map((backend) => backend.stop()));
  let channel: Channel | undefined;
  try {
    await Promise.all(all.map((backend) => backend.start()));
    const startMs = performance.now();
    const histories = new Map<string, History>(
      all.map(({ name, url }) => [url, { name, isolatedMs: [], returnedMs: [] }]),
    );
    channel = openChannel(all, (event) => remember(event, histories, performance.now() - startMs));
    const show = json ? () => {} : createTable(all);
    const tally: Tally = { calls: 0, errors: 0, byCode: {}, latenciesMs: [] };
    await play({ backends, channel, tally, rate, startMs, show });
    return figuresOf(channel, histories, tally);
  } finally {
    channel?.close();
    await stopAll();
  }
}

function openChannel(all: readonly Backend[], onEvent: (event: ElimitEvent) => void): Channel {
  return createChannel({
    name: 'demo',
    nodes: all.map(({ url }) => url),
    timeoutMs: TIMEOUT_MS,
    tryTimeoutMs: TRY_TIMEOUT_MS,
    errorCost: true,
    maxIsolatedRatio: 0.7, // two of three are down at once here
    healthCheck: { intervalMs: HEALTH_INTERVAL_MS, path: '/healthz' },
    onEvent,
  });
}

function remember(event: ElimitEvent, histories: Map<string, History>, atMs: number): void {
  if (event.type !== 'open' && event.type !== 'close') return;
  const [origin = ''] = event.name.split(' ');
  const history = histories.get(origin);
  if (event.type === 'open') history?.isolatedMs.push(Math.round(atMs));
  else history?.returnedMs.push(Math.round(atMs));
}

interface Play {
  readonly backends: Backends;
  readonly channel: Channel;
  readonly tally: Tally;
  readonly rate: number;
  readonly startMs: number;
  readonly show: (atMs: number, said: string, channel: Channel, tally: Tally) => void;
}

/** Open loop: calls go out at their times, whether or not earlier ones have come back. */
async function play({ backends, channel, tally, rate, startMs, show }: Play): Promise<void> {
  const http = breaker(axios.create(), channel);
  const calls: Promise<void>[] = [];
  const acts: Promise<void>[] = [];
  const steps = [...STEPS];
  let said = 'all three are up';
  let nextTableMs = 0;
  for (let nowMs = 0; nowMs < END_MS; nowMs = performance.now() - startMs) {
    const step = steps[0];
    if (step !== undefined && nowMs >= step.atMs) {
      steps.shift();
      said = step.say;
      acts.push(Promise.resolve(step.do(backends)));
    }
    while (calls.length < (nowMs / 1000) * rate) calls.push(oneCall(http, tally));
    if (nowMs >= nextTableMs) {
      nextTableMs += TABLE_EVERY_MS;
      show(nowMs, said, channel, tally);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await Promise.all(calls);
  await Promise.all(acts);
  show(END_MS, said, channel, tally);
}

async function oneCall(http: AxiosInstance, tally: Tally): Promise<void> {
  const startMs = performance.now();
  tally.calls += 1;
  try {
    await http.get('/');
    tally.latenciesMs.push(performance.now() - startMs);
  } catch (error) {
    const { code = 'unknown' } = error as { code?: string };
    tally.errors += 1;
    tally.byCode[code] = (tally.byCode[code] ?? 0) + 1;
  }
}

/** A table that stays in its place on a terminal, and is written once a step elsewhere. */
function createTable(all: readonly Backend[]): Play['show'] {
  const isLive = process.stdout.isTTY;
  let lines = 0;
  let last = '';
  return (atMs, said, channel, tally) => {
    if (!isLive && said === last && atMs < END_MS) return;
    last = said;
    const rows = channel
      .endpoints()
      .map((endpoint, i) => [
        all[i]?.name ?? '',
        endpoint.state,
        endpoint.reason,
        `${endpoint.nBreak}`,
        `${endpoint.recentErrors}`,
        `${Math.round(endpoint.isolationLeftMs)}`,
        endpoint.rampRatio.toFixed(2),
        `${endpoint.inflight}`,
        `${endpoint.calls}`,
        (endpoint.meanLatencyUs / 1000).toFixed(1),
      ]);
    const text = [
      `${(atMs / 1000).toFixed(1).padStart(5)} s   ${said.padEnd(20)} callers: ${tally.calls} calls, ${tally.errors} errors`,
      line(HEAD),
      ...rows.map(line),
      '',
    ];
    if (isLive && lines > 0) process.stdout.write(`\u001B[${lines}A\u001B[J`);
    process.stdout.write(`${text.join('\n')}\n`);
    lines = text.length;
  };
}

const HEAD = [
  'node',
  'state',
  'reason',
  'nBreak',
  'recentErr',
  'left ms',
  'ramp',
  'inflight',
  'calls',
  'mean ms',
];
const WIDTHS = [6, 10, 16, 8, 11, 9, 6, 10, 8, 9];

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i < 3 ? cell.padEnd(WIDTHS[i] ?? 0) : cell.padStart(WIDTHS[i] ?? 0)))
    .join('');
}

function figuresOf(
  channel: Channel,
  histories: Map<string, History>,
  tally: Tally,
): OutboundFigures {
  const backends = channel.endpoints().map(({ origin, calls, state }) => ({
    ...(histories.get(origin) as History),
    calls,
    state,
  }));
  const sorted = tally.latenciesMs.toSorted((x, y) => x - y);
  const at = (share: number) => Math.round(sorted[Math.floor(share * sorted.length)] ?? 0);
  const { calls, errors, byCode } = tally;
  return {
    calls,
    errors,
    byCode,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    backends,
    problems: judge(backends, tally),
  };
}

/** Everything that was promised and did not come true. */
function judge(backends: OutboundFigures['backends'], { calls, errors }: Tally): string[] {
  const problems: string[] = [];
  if (errors > calls * MAX_ERROR_RATIO) {
    problems.push(
      `${errors} of ${calls} calls failed; at most ${Math.floor(calls * MAX_ERROR_RATIO)} may`,
    );
  }
  for (const { name, isolatedMs, returnedMs, state } of backends) {
    const mayBreak = name !== 'A';
    if (mayBreak !== isolatedMs.length > 0) {
      problems.push(
        mayBreak ? `${name} was never isolated` : `${name} was isolated, and had no fault`,
      );
    }
    if (mayBreak && returnedMs.length === 0) problems.push(`${name} did not come back`);
    if (state !== 'closed') problems.push(`${name} is ${state} at the end`);
  }
  return problems;
}

function verdict({
  calls,
  errors,
  byCode,
  p50Ms,
  p99Ms,
  backends,
  problems,
}: OutboundFigures): string {
  const faults = backends
    .filter(({ name }) => name !== 'A')
    .map(({ name, isolatedMs, returnedMs }) => {
      const [fault, end] = name === 'B' ? [STEPS[0], STEPS[2]] : [STEPS[1], STEPS[3]];
      const out = (isolatedMs.find((atMs) => atMs >= fault.atMs) ?? Number.NaN) - fault.atMs;
      const back = (returnedMs.at(-1) ?? Number.NaN) - end.atMs;
      return `${fault.say}: isolated after ${out} ms; ${end.say}: takes calls again after ${back} ms`;
    });
  return [
    ...faults,
    `callers: ${calls} calls, ${errors} errors ${JSON.stringify(byCode)}, p50 ${p50Ms} ms, p99 ${p99Ms} ms`,
    problems.length === 0 ? 'verdict: held' : `verdict: FAILED\n  ${problems.join('\n  ')}`,
    '',
  ].join('\n');
}
