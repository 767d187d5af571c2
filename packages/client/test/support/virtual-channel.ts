import {
  type Attempt,
  type CallOptions,
  type Channel,
  type ChannelOptions,
  createChannel,
} from '@elimit/client';
import { createRegistry, type ElimitEvent, type Registry } from '@elimit/core';
import { settle, VirtualClock } from '@elimit/testkit';

/** What a node does with a try: a value, or a promise of one. */
export type Behaviour = (attempt: Attempt) => unknown;

export interface VirtualChannel {
  readonly clock: VirtualClock;
  readonly registry: Registry;
  readonly channel: Channel;
  readonly events: ElimitEvent[];
  /** Origins in the order in which they were tried. */
  readonly tries: string[];
  readonly attempts: Attempt[];
  /** What each node does, by its letter. */
  readonly nodes: Record<string, Behaviour>;
  /** What the health check finds, by letter; true unless set. */
  readonly healthy: Record<string, boolean>;
  /** Health checks in the order in which they were made. */
  readonly checks: string[];
  call(options?: CallOptions): Promise<unknown>;
  state(letter: string): string;
}

/** A channel on a virtual clock, with nodes `http://a`, `http://b` and so on. Isolations without jitter. */
export function virtualChannel(
  letters: string,
  options: ChannelOptions = {},
  shared: { clock?: VirtualClock } = {},
): VirtualChannel {
  const clock = shared.clock ?? new VirtualClock();
  const registry = createRegistry();
  const events: ElimitEvent[] = [];
  const tries: string[] = [];
  const attempts: Attempt[] = [];
  const checks: string[] = [];
  const nodes: Record<string, Behaviour> = {};
  const healthy: Record<string, boolean> = {};
  const channel = createChannel({
    ...(letters === '' ? {} : { nodes: letters.split('').map((letter) => `http://${letter}`) }),
    clock,
    timers: clock,
    registry,
    random: () => 0,
    onEvent: (event) => events.push(event),
    ...options,
    breaker: { isolationJitterRatio: 0, ...options.breaker } as NonNullable<
      ChannelOptions['breaker']
    >,
    ...(options.healthCheck === false
      ? { healthCheck: false }
      : {
          healthCheck: {
            probe: ({ url }) => {
              checks.push(url.hostname);
              return Promise.resolve(healthy[url.hostname] ?? true);
            },
            ...options.healthCheck,
          },
        }),
  });
  return {
    clock,
    registry,
    channel,
    events,
    tries,
    attempts,
    nodes,
    healthy,
    checks,
    call: (callOptions = {}) =>
      channel.execute((attempt) => {
        const { hostname } = attempt.endpoint.url;
        tries.push(hostname);
        attempts.push(attempt);
        return (nodes[hostname] ?? (() => hostname))(attempt);
      }, callOptions),
    state: (letter) =>
      channel.endpoints().find(({ origin }) => origin === `http://${letter}`)?.state ?? 'gone',
  };
}

/** Throws just this, error or not. */
export const raise =
  (thrown: unknown): Behaviour =>
  () => {
    throw thrown as Error;
  };

/** Throws an error with this code. */
export const fail =
  (code: string, extra: object = {}): Behaviour =>
  () => {
    throw Object.assign(new Error(code), { code, ...extra });
  };

/** Answers with a status, and headers. */
export const answer =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  () => ({ status, headers });

export const refusal = (retryAfter = '1'): Behaviour =>
  answer(503, { 'x-bd-error-code': '2004', 'retry-after': retryAfter });

/** Never answers, whatever its signal says. */
export const never: Behaviour = () => new Promise(() => {});

/** Answers after a time on the virtual clock. */
export const after =
  (
    clock: VirtualClock,
    ms: number,
    then: Behaviour = ({ endpoint }) => endpoint.url.hostname,
  ): Behaviour =>
  (attempt) =>
    new Promise((resolve) => {
      clock.setTimeout(() => resolve(Promise.resolve(attempt).then(then)), ms);
    });

/** How a promise has ended by now: its value, its error, or `pending`. */
export async function endOf(promise: Promise<unknown>): Promise<unknown> {
  const end = promise.catch((error: unknown) => error);
  const now = await Promise.race([end, settle().then(() => 'pending')]);
  await settle(); // jest forgives a rejection that was handled late only a turn later
  return now;
}
