import { freePort } from '@elimit/testkit';
import { WORKLOADS, type Workload } from '../http/handlers.js';
import { capacityOf, type Phase, type PhaseResult, type Protection, runPhase } from './phases.js';
import { headLine, LEGEND, rowOf } from './table.js';

export interface OverloadDemoOptions {
  readonly handlers: readonly Workload[];
  /** Requests per second; by default three times what the handler can do, then six times. */
  readonly rate: number | undefined;
  /** How long each service is measured. */
  readonly seconds: number;
  /** Of the service; 0 for any free one. */
  readonly port: number;
  readonly json: boolean;
  /** Goes on with the first handler, for an hour at most. */
  readonly keep: boolean;
}

/** Handlers that have a capacity to be overloaded. */
export const DEMO_HANDLERS = WORKLOADS.filter((workload) => Number.isFinite(capacityOf(workload)));

const DEADLINE_MS = 500;
const WARM_UP_MS = 1000;
/** What a protected service has to serve in time, as a share of what its handler could do if nothing else cost anything. */
const LEAST_SERVED = 0.6;
/** Most of the requests that may end without an answer in time or a refusal. */
const MOST_IN_VAIN = 0.05;
/** A client process that has a core to itself is hardly ever so late. */
const BUSY_LAG_MS = 100;

/** Runs every phase, tells the verdict, and gives the exit code. */
export async function overloadDemo(options: OverloadDemoOptions): Promise<0 | 1> {
  const phases = options.handlers.flatMap((workload) => phasesOf(workload, options.rate));
  const say = options.json ? () => undefined : (text: string) => process.stdout.write(text);
  say(
    `The same Express service, bare and protected, under the same overload. Each client waits ${DEADLINE_MS} ms, then hangs up.\n` +
      `${phases.length} runs of ${options.seconds} s, ${Math.round(phases.length * (options.seconds + 1.7))} s in all.\n`,
  );
  // one port for all runs, so that a page that is open finds the next one
  const port = options.port === 0 ? await freePort() : options.port;
  say(
    `Status page while it runs: http://127.0.0.1:${port}/elimit/status\n${LEGEND}\n\n${headLine()}\n`,
  );
  const results: PhaseResult[] = [];
  const timing = {
    warmUpMs: WARM_UP_MS,
    durationMs: options.seconds * 1000,
    deadlineMs: DEADLINE_MS,
    port,
  };
  const live = process.stdout.isTTY;
  for (const phase of phases) {
    const result = await runPhase(phase, timing, (soFar) => {
      if (live) say(`\r${rowOf(soFar)}`);
    });
    say(`${live ? '\r' : ''}${rowOf(result)}\n`);
    results.push(result);
  }
  const verdicts = options.handlers.map((workload) => verdictOf(workload, results));
  const helped = verdicts.every((verdict) => verdict.helped);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ helped, verdicts, results }, null, 2)}\n`);
  } else {
    say(`\n${verdicts.map(({ text }) => text).join('\n')}\n\n${busyNote(results)}${nextSteps()}`);
  }
  const [first] = options.handlers;
  if (options.keep && first !== undefined) {
    say(
      `\nGoing on with ${first} behind limit('auto') until Ctrl-C: http://127.0.0.1:${port}/elimit/status\n`,
    );
    const phase = { workload: first, protection: 'auto', rate: 1.5 * capacityOf(first) } as const;
    await runPhase(phase, { ...timing, durationMs: 3_600_000 }, () => undefined);
  }
  return helped ? 0 : 1;
}

function phasesOf(workload: Workload, rate: number | undefined): Phase[] {
  const run = (protection: Protection, times: number): Phase => ({
    workload,
    protection,
    rate: rate ?? times * capacityOf(workload),
  });
  const phases = [run('bare', 3), run('auto', 3), run('timeout', 3)];
  if (rate === undefined) phases.push(run('auto', 6));
  return phases;
}

export interface Verdict {
  readonly workload: Workload;
  readonly helped: boolean;
  readonly text: string;
}

function perSecond(result: PhaseResult | undefined): number {
  return result?.load === undefined ? 0 : result.load.inTime / result.load.seconds;
}

/** Requests per second that waited for nothing: answered late, given up, or failed. */
function inVainPerSecond({ load }: PhaseResult): number {
  return load === undefined ? 0 : (load.late + load.errors) / load.seconds;
}

/** Protection helped if every protected run did most of what the handler can do, and told all others no in time. */
export function verdictOf(workload: Workload, all: readonly PhaseResult[]): Verdict {
  const results = all.filter((result) => result.workload === workload);
  const bare = results.find(({ protection }) => protection === 'bare');
  const guarded = results.filter(({ protection }) => protection !== 'bare');
  const unhelped = guarded.filter((result) => {
    const { load } = result;
    if (load === undefined) return true;
    const served = Math.min(load.offered / load.seconds, capacityOf(workload));
    return (
      perSecond(result) < LEAST_SERVED * served ||
      load.late + load.errors > MOST_IN_VAIN * load.offered
    );
  });
  const inVain = bare === undefined ? 0 : inVainPerSecond(bare);
  const helped = guarded.length > 0 && unhelped.length === 0;
  const worst = guarded.toSorted((a, b) => perSecond(a) - perSecond(b))[0];
  const figures =
    `Bare: ${Math.round(perSecond(bare))}/s in time, and ${Math.round(inVain)}/s waited in vain. ` +
    `Protected: ${Math.round(perSecond(worst))}/s in time at worst, ${Math.round(worst === undefined ? 0 : inVainPerSecond(worst))}/s in vain`;
  return {
    workload,
    helped,
    text: helped
      ? `${workload}: protected. ${figures}; the handler can do about ${Math.round(capacityOf(workload))}/s.`
      : `${workload}: NOT protected by ${unhelped.map(nameOf).join(', ')}. ${figures}.`,
  };
}

function nameOf({ protection, rate }: PhaseResult): string {
  return `limit('${protection}') at ${Math.round(rate)}/s`;
}

/** Said if the clients themselves came late: then it was the machine that was overloaded, not the service. */
function busyNote(results: readonly PhaseResult[]): string {
  const lagMs = Math.max(...results.map(({ load }) => load?.sendingLag.p99 ?? 0));
  if (lagMs < BUSY_LAG_MS) return '';
  return `The clients were up to ${Math.round(lagMs)} ms late themselves: this machine is busy with something else, and the figures say little.\n\n`;
}

function nextSteps(): string {
  return [
    'Next:',
    '  npm run demo -- --handler mixed          another handler: cpu, async, mixed, post, later, all',
    '  npm run demo -- --rate 2000 --seconds 10 another load',
    '  npm run demo -- outbound                 the other direction: calls to nodes that break and return',
    '  README.md                                five lines to put this in front of your own service',
    '',
  ].join('\n');
}
