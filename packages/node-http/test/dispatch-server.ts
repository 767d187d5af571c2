import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGuard, type Guard } from '@elimit/core';
import {
  arrivalOf,
  type DispatchOptions,
  type DispatchSnapshot,
  dispatch,
  dispatchSnapshot,
  writeRejection,
} from '../src/index.js';

/** A bare server whose handler stands behind a guard and the dispatch queue. */
export interface DispatchServer {
  readonly server: Server;
  readonly guard: Guard;
  readonly port: number;
  close(): Promise<void>;
}

export type Handler = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;

export interface DispatchServerOptions {
  readonly limit?: number;
  readonly optionsOf?: (req: IncomingMessage) => DispatchOptions;
  /** Runs around admission and dispatch, as a framework's middleware would. */
  readonly around?: (req: IncomingMessage, admit: () => void) => void;
}

export async function serve(
  handler: Handler,
  {
    limit = 10_000,
    optionsOf = () => ({}),
    around = (_req, admit) => admit(),
  }: DispatchServerOptions = {},
): Promise<DispatchServer> {
  const guard = createGuard({ limit, registry: false });
  const server = createServer((req, res) => {
    around(req, () => {
      const options = optionsOf(req);
      const entry = guard.tryAcquire({ arrivedUs: arrivalOf(req) });
      if (!entry.admitted) {
        writeRejection(res, entry);
        return;
      }
      res.once('prefinish', () => entry.release('success'));
      dispatch(
        req,
        res,
        entry,
        () => void handler(req, res),
        (no) => writeRejection(res, no),
        options,
      );
    });
  });
  server.listen(0, '127.0.0.1', 4096);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    guard,
    port,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What passed through the queue between its making and the reading. */
export function dispatchedSince(before: DispatchSnapshot): Omit<DispatchSnapshot, 'longest'> {
  const now = dispatchSnapshot();
  return {
    waiting: now.waiting,
    atOnce: now.atOnce - before.atOnce,
    queued: now.queued - before.queued,
    started: now.started - before.started,
    abandoned: now.abandoned - before.abandoned,
    overdue: now.overdue - before.overdue,
    overflown: now.overflown - before.overflown,
    spins: now.spins - before.spins,
  };
}

/** A client's connection on which anything can be written, and which keeps what it reads. */
export class RawClient {
  readonly socket: Socket;
  received = '';

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.received += text;
    });
    this.socket.on('error', () => undefined);
  }

  static async to(port: number): Promise<RawClient> {
    const client = new RawClient(port);
    await once(client.socket, 'connect');
    return client;
  }

  get(path: string, headers = ''): void {
    this.socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`);
  }

  /** The status lines read so far. */
  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]));
  }
}

/** Lets the loop go round until something is so; fails after some thousands of turns, not after some time. */
export async function until(what: () => boolean): Promise<void> {
  for (let turn = 0; !what(); turn++) {
    if (turn > 200_000) throw new Error(`it never came to be that ${what.toString()}`);
    await nextTurn();
  }
}

/** Keeps the thread busy. */
export function burn(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

/** A handler's usual end. */
export function ok(_req: IncomingMessage, res: ServerResponse): void {
  res.end('ok');
}
