import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { closedLoop, type LoadResult, offerLoad } from './load.js';

export interface StartedExample {
  readonly url: string;
  stop(): void;
}

/**
 * Starts an example by the one command that its README says, on a free port.
 *
 * @param test - `import.meta.url` of a file in its `test` folder
 */
export async function startExample(test: string): Promise<StartedExample> {
  const child = spawn('npm', ['start', '--silent'], {
    cwd: fileURLToPath(new URL('..', test)),
    env: { ...process.env, PORT: '0' },
    detached: true, // npm, its shell and node: to be ended as one
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = () => process.kill(-(child.pid as number), 'SIGKILL');
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(String(text))?.[0];
  if (url === undefined) {
    stop();
    throw new Error(`it started with ${String(text)}`);
  }
  return { url, stop };
}

/** What became of twice the rate that a path can do. */
export interface TwiceTheRate {
  /** Of `perSecond`: answered in time. */
  readonly served: number;
  /** Of all that was offered: neither answered in time nor refused. */
  readonly inVain: number;
  readonly load: LoadResult;
}

/**
 * Asks for a path as fast as one caller can, then offers twice that rate. Clients wait for a hundred times what one
 * call took: all of it is measured in the same minute, so that a slow machine gives the same shares.
 */
export async function twiceTheRate(url: string, path: string): Promise<TwiceTheRate> {
  const port = Number(new URL(url).port);
  const alone = { port, path, connections: 1, warmUpMs: 500, durationMs: 1000 };
  const { perSecond } = await closedLoop(alone);
  const load = await offerLoad({
    port,
    path,
    client: 'hangUp',
    rate: 2 * perSecond,
    warmUpMs: 500,
    durationMs: 2000,
    deadlineMs: (100 * 1000) / perSecond,
  });
  return {
    served: load.perSecond / perSecond,
    inVain: (load.late + load.errors) / load.offered,
    load,
  };
}

/** What the limit that an example shows first at `/limits` has admitted, once nobody is in it any more. */
export async function admittedAtRest(url: string): Promise<number> {
  for (;;) {
    const answer = await fetch(`${url}/limits`);
    if (answer.status !== 200) throw new Error(`/limits answered with ${answer.status}`);
    const limits = (await answer.json()) as {
      readonly inflight: number;
      readonly admitted: number;
    }[];
    const [first] = limits;
    if (first?.inflight === 0) return first.admitted;
  }
}
