import { setTimeout as sleep } from 'node:timers/promises';

/** How one call of a user ended. */
export interface CallEnd {
  /** When it began and how long it took, in milliseconds from the start of the load. */
  readonly atMs: number;
  readonly tookMs: number;
  /** `ok`, or the error's status or code. */
  readonly end: string;
}

export interface OpenLoad {
  readonly rate: number;
  readonly forMs: number;
  /** Makes one call; throws for every end but a good one. */
  readonly call: () => Promise<unknown>;
  /** Told the time, now and then. */
  readonly at?: (nowMs: number) => void;
}

const TICK_MS = 4;

/** Open loop: calls go out at their times, evenly, whether or not earlier ones have come back. */
export async function offer({ rate, forMs, call, at }: OpenLoad): Promise<CallEnd[]> {
  const startMs = performance.now();
  const calls: Promise<CallEnd>[] = [];
  for (let nowMs = 0; nowMs < forMs; nowMs = performance.now() - startMs) {
    at?.(nowMs);
    while (calls.length < (nowMs / 1000) * rate) calls.push(one(call, startMs));
    await sleep(TICK_MS);
  }
  return Promise.all(calls);
}

async function one(call: () => Promise<unknown>, startMs: number): Promise<CallEnd> {
  const beganMs = performance.now();
  const end = await endOf(call);
  return { atMs: beganMs - startMs, tookMs: performance.now() - beganMs, end };
}

async function endOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return 'ok';
  } catch (error) {
    const { code, response } = error as { code?: string; response?: { status: number } };
    return response === undefined ? (code ?? 'unknown') : String(response.status);
  }
}

/** So many callers, each with one call after the other: what a service does when it is never idle. */
export async function saturate(
  callers: number,
  forMs: number,
  call: () => Promise<unknown>,
): Promise<number> {
  const untilMs = performance.now() + forMs;
  let done = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      await call();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (done * 1000) / forMs;
}

/** Ends by kind, and the latencies of good ones. */
export function tally(ends: readonly CallEnd[]) {
  const byEnd: Record<string, number> = {};
  for (const { end } of ends) byEnd[end] = (byEnd[end] ?? 0) + 1;
  const good = ends.filter(({ end }) => end === 'ok').map(({ tookMs }) => tookMs);
  good.sort((a, b) => a - b);
  const quantile = (share: number) => Math.round(good[Math.floor(share * good.length)] ?? 0);
  return { calls: ends.length, byEnd, p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}
