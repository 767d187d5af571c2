import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { seededRandom } from '@elimit/testkit';
import { AnswerReader } from './answer-reader.js';

/**
 * How a client behaves.
 *
 * - `patient`: keeps its connections and waits for every answer.
 * - `hangUp`: keeps its connections, but closes one whose answer has not come by the deadline.
 * - `oneShot`: a connection for each request, closed at the deadline at the latest.
 */
export type ClientKind = 'patient' | 'hangUp' | 'oneShot';

/** An open loop: requests are sent when they are due, whatever has become of those before. */
export interface LoadOptions {
  readonly port: number;
  readonly host?: string;
  readonly client: ClientKind;
  /** Requests per second. */
  readonly rate: number;
  /** `even`: one every 1/rate; `poisson`: independent arrivals. @default 'poisson' */
  readonly arrivals?: 'even' | 'poisson';
  /** Sent, but not counted, before the measurement begins. @default 0 */
  readonly warmUpMs?: number;
  readonly durationMs: number;
  /** An answer later than this is late. @default 500 */
  readonly deadlineMs?: number;
  /** @default 'GET' */
  readonly method?: string;
  /** @default '/' */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of the Poisson arrivals. @default 1 */
  readonly seed?: number;
}

/** Latencies, in milliseconds, from the moment a request was due. All 0 if there were none. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** What became of the requests that fell due while it was measured. */
export interface LoadResult {
  readonly seconds: number;
  readonly offered: number;
  /** Answered below 400 by the deadline. */
  readonly inTime: number;
  /**
   * Answers below 400 by their deadline that came while it was measured, per second, whenever their requests fell due: counted as a
   * {@link ClosedLoopResult} is. What waited before the measurement began and is worked off in it is work done in it.
   */
  readonly perSecond: number;
  /** Answered below 400 later, or given up at the deadline. */
  readonly late: number;
  /** Of the late ones: those whose client closed the connection. */
  readonly hungUp: number;
  /** Answered 503 or 429. */
  readonly refused: number;
  /** Any other status, or a connection that failed. */
  readonly errors: number;
  readonly answers: Percentiles;
  readonly refusals: Percentiles;
  /** How late this client itself was in sending: a run in which it grows says little. */
  readonly sendingLag: Percentiles;
}

/** A closed loop: each connection sends its next request when it has the answer to the last. */
export interface ClosedLoopOptions {
  readonly port: number;
  readonly host?: string;
  readonly connections: number;
  readonly warmUpMs?: number;
  readonly durationMs: number;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ClosedLoopResult {
  readonly seconds: number;
  /** Answered below 400. */
  readonly answered: number;
  readonly perSecond: number;
  /** Every other end. */
  readonly failed: number;
  readonly answers: Percentiles;
}

/** A patient client gives up after all, so that a run ends. */
const PATIENCE_MS = 10_000;
/** How often what has fallen due is sent: the timer's own grain. */
const TICK_MS = 1;

interface Call {
  readonly dueMs: number;
  readonly counted: boolean;
  /** True once it was sent again, on a new connection. */
  again: boolean;
}

interface Connection {
  readonly socket: Socket;
  readonly reader: AnswerReader;
  call: Call | undefined;
  /** It has answered before: what fails on it may be the server's closing of an idle connection. */
  reused: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** How often `onProgress` hears. */
const PROGRESS_MS = 250;

/**
 * Offers a load to a server on this machine and counts what comes back.
 *
 * @param onProgress - hears what there is so far, four times a second
 */
export async function offerLoad(
  options: LoadOptions,
  onProgress?: (soFar: LoadResult) => void,
): Promise<LoadResult> {
  return new OpenLoop(options).run(onProgress);
}

/**
 * Offers loads by turns, so often each: what else the machine does meanwhile comes to all of them alike. In each turn loads of
 * one rate have the same arrivals, and others than in the turn before.
 *
 * @returns for each load, what came of its turns
 */
export async function offerInTurns(
  loads: readonly LoadOptions[],
  turns: number,
): Promise<LoadResult[][]> {
  const results: LoadResult[][] = loads.map(() => []);
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < loads.length; i++) {
      const which = (turn + i) % loads.length; // another one first each time
      const load = loads[which] as LoadOptions;
      results[which]?.push(await offerLoad({ ...load, seed: turn + 1 }));
    }
  }
  return results;
}

class OpenLoop {
  readonly #host: string;
  readonly #port: number;
  readonly #client: ClientKind;
  readonly #deadlineMs: number;
  readonly #request: Buffer;
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Connection>();
  readonly #nextGapMs: () => number;
  readonly #warmUpMs: number;
  readonly #durationMs: number;
  readonly #answers: number[] = [];
  readonly #refusals: number[] = [];
  readonly #lags: number[] = [];
  #countFromMs = 0;
  #endMs = 0;
  #offered = 0;
  #inTime = 0;
  #cameInTime = 0;
  #late = 0;
  #hungUp = 0;
  #refused = 0;
  #errors = 0;

  constructor(options: LoadOptions) {
    this.#host = options.host ?? '127.0.0.1';
    this.#port = options.port;
    this.#client = options.client;
    this.#deadlineMs = options.deadlineMs ?? 500;
    this.#warmUpMs = options.warmUpMs ?? 0;
    this.#durationMs = options.durationMs;
    this.#request = requestText(options, options.client === 'oneShot');
    const meanGapMs = 1_000 / options.rate;
    const random = seededRandom(options.seed ?? 1);
    this.#nextGapMs =
      options.arrivals === 'even' ? () => meanGapMs : () => -Math.log(1 - random()) * meanGapMs;
  }

  async run(onProgress?: (soFar: LoadResult) => void): Promise<LoadResult> {
    const startMs = performance.now();
    const countFromMs = startMs + this.#warmUpMs;
    const endMs = countFromMs + this.#durationMs;
    this.#countFromMs = countFromMs;
    this.#endMs = endMs;
    let tellMs = countFromMs + PROGRESS_MS;
    let dueMs = startMs + this.#nextGapMs();
    while (dueMs < endMs) {
      const nowMs = performance.now();
      for (; dueMs <= nowMs && dueMs < endMs; dueMs += this.#nextGapMs()) {
        const counted = dueMs >= countFromMs;
        if (counted) {
          this.#offered++;
          this.#lags.push(nowMs - dueMs);
        }
        this.#send({ dueMs, counted, again: false });
      }
      if (onProgress !== undefined && nowMs >= tellMs) {
        tellMs += PROGRESS_MS;
        onProgress(this.#result((nowMs - countFromMs) / 1_000));
      }
      await sleep(TICK_MS);
    }
    const graceEndMs = performance.now() + PATIENCE_MS;
    while (this.#busy() && performance.now() < graceEndMs) await sleep(10);
    for (const connection of this.#open) this.#drop(connection);
    return this.#result(this.#durationMs / 1_000);
  }

  #result(seconds: number): LoadResult {
    return {
      seconds,
      offered: this.#offered,
      inTime: this.#inTime,
      perSecond: this.#cameInTime / seconds,
      late: this.#late,
      hungUp: this.#hungUp,
      refused: this.#refused,
      errors: this.#errors,
      answers: percentiles(this.#answers),
      refusals: percentiles(this.#refusals),
      sendingLag: percentiles(this.#lags),
    };
  }

  #busy(): boolean {
    return this.#open.size > this.#idle.length;
  }

  #send(call: Call): void {
    const connection = (call.again ? undefined : this.#idle.pop()) ?? this.#connect();
    connection.call = call;
    const patienceMs = this.#client === 'patient' ? PATIENCE_MS : this.#deadlineMs;
    const leftMs = call.dueMs + patienceMs - performance.now();
    connection.timer = setTimeout(() => this.#giveUp(connection), Math.max(0, leftMs));
    connection.socket.write(this.#request);
  }

  #connect(): Connection {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    const reader = new AnswerReader();
    const connection: Connection = {
      socket,
      reader,
      call: undefined,
      reused: false,
      timer: undefined,
    };
    this.#open.add(connection);
    socket.on('data', (chunk) => {
      reader.push(chunk);
      if (reader.complete) this.#answered(connection);
    });
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#closed(connection));
    return connection;
  }

  #answered(connection: Connection): void {
    const { call, reader } = connection;
    const { status, keepsAlive } = reader;
    reader.reset();
    if (call !== undefined) this.#count(call, status);
    connection.call = undefined;
    clearTimeout(connection.timer);
    connection.reused = true;
    if (keepsAlive && this.#client !== 'oneShot') this.#idle.push(connection);
    else this.#drop(connection);
  }

  #count(call: Call, status: number): void {
    const nowMs = performance.now();
    const tookMs = nowMs - call.dueMs;
    const good = status >= 200 && status < 400;
    const inTime = tookMs <= this.#deadlineMs;
    if (good && inTime && nowMs >= this.#countFromMs && nowMs < this.#endMs) this.#cameInTime++;
    if (!call.counted) return;
    if (status === 503 || status === 429) {
      this.#refused++;
      this.#refusals.push(tookMs);
    } else if (!good) this.#errors++;
    else {
      this.#answers.push(tookMs);
      if (inTime) this.#inTime++;
      else this.#late++;
    }
  }

  #giveUp(connection: Connection): void {
    if (connection.call?.counted === true) {
      this.#late++;
      this.#hungUp++;
    }
    connection.call = undefined;
    this.#drop(connection);
  }

  #closed(connection: Connection): void {
    const { call } = connection;
    connection.call = undefined;
    this.#drop(connection);
    if (call === undefined) return;
    // a server may close an idle connection just as it is used again: not an answer, so once more
    if (connection.reused && !call.again) this.#send({ ...call, again: true });
    else if (call.counted) this.#errors++;
  }

  #drop(connection: Connection): void {
    clearTimeout(connection.timer);
    this.#open.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    connection.socket.destroy();
  }
}

/** Keeps `connections` requests under way and counts the answers: the capacity of a server, if it is enough of them. */
export async function closedLoop(options: ClosedLoopOptions): Promise<ClosedLoopResult> {
  const request = requestText(options, false);
  const startMs = performance.now();
  const countFromMs = startMs + (options.warmUpMs ?? 0);
  const endMs = countFromMs + options.durationMs;
  const answers: number[] = [];
  let answered = 0;
  let failed = 0;

  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const reader = new AnswerReader();
      let sentMs = 0;
      const socket = connect({
        host: options.host ?? '127.0.0.1',
        port: options.port,
        noDelay: true,
      });
      const send = (): void => {
        sentMs = performance.now();
        socket.write(request);
      };
      const end = setTimeout(() => socket.destroy(), endMs - performance.now());
      socket.on('connect', send);
      socket.on('data', (chunk) => {
        reader.push(chunk);
        if (!reader.complete) return;
        const nowMs = performance.now();
        const good = reader.status >= 200 && reader.status < 400;
        if (nowMs >= countFromMs && nowMs < endMs) {
          if (good) {
            answered++;
            answers.push(nowMs - sentMs);
          } else failed++;
        }
        const { keepsAlive } = reader;
        reader.reset();
        if (keepsAlive) send();
        else socket.destroy();
      });
      socket.on('error', () => {
        failed++;
      });
      socket.on('close', () => {
        clearTimeout(end);
        resolve();
      });
    });

  const loops = Array.from({ length: options.connections }, async () => {
    while (performance.now() < endMs) await one();
  });
  await Promise.all(loops);
  const seconds = options.durationMs / 1_000;
  return {
    seconds,
    answered,
    perSecond: answered / seconds,
    failed,
    answers: percentiles(answers),
  };
}

function requestText(
  options: Pick<LoadOptions, 'method' | 'path' | 'headers' | 'body'>,
  closes: boolean,
): Buffer {
  const { method = 'GET', path = '/', headers = {}, body = '' } = options;
  const lines = [`${method} ${path} HTTP/1.1`, 'host: load.test'];
  if (body !== '') lines.push(`content-length: ${Buffer.byteLength(body)}`);
  if (body !== '' && headers['content-type'] === undefined) {
    lines.push('content-type: application/json');
  }
  if (closes) lines.push('connection: close');
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

/** Sorts in place. */
function percentiles(values: number[]): Percentiles {
  values.sort((a, b) => a - b);
  const at = (ratio: number): number =>
    values[Math.min(values.length - 1, Math.floor(values.length * ratio))] ?? 0;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: values.at(-1) ?? 0 };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
