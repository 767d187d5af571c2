import http from 'node:http';
import https from 'node:https';
import { isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { TimerHandle } from '@elimit/core';
import { ConnectTimeoutError } from './errors.js';
import { patientTimers } from './patient-timers.js';

/** TLS settings of an endpoint: certificates, server name, versions, as `tls.connect` takes them. */
export type TlsOptions = Readonly<ConnectionOptions>;

/** How an endpoint is connected to. */
export interface ConnectOptions {
  /** How long TCP may take; looking up the name and TLS are not part of it. */
  readonly connectTimeoutMs: number;
  readonly tls: TlsOptions;
  /** Told whenever a TCP connection stands. */
  readonly connected: () => void;
}

/** Node's own lower bound for one address of several. */
const SHORTEST_ATTEMPT_MS = 10;

/** Idle connections kept per endpoint; Node's own default. */
const MAX_FREE_SOCKETS = 256;

/** A keep-alive agent whose TCP connections have a time limit of their own. */
export function createAgent(protocol: string, options: ConnectOptions): http.Agent {
  return protocol === 'https:' ? new TimedHttpsAgent(options) : new TimedHttpAgent(options);
}

function agentOptions({ connectTimeoutMs }: ConnectOptions): http.AgentOptions {
  return {
    keepAlive: true,
    maxFreeSockets: MAX_FREE_SOCKETS,
    ...({
      autoSelectFamilyAttemptTimeout: addressTimeoutMs(connectTimeoutMs),
    } satisfies Partial<TcpNetConnectOpts> as http.AgentOptions),
  };
}

/** Time for one address of several: else a dead first one eats the whole time and reads as a connect timeout. */
export function addressTimeoutMs(connectTimeoutMs: number): number {
  return Math.max(SHORTEST_ATTEMPT_MS, Math.floor(connectTimeoutMs / 3));
}

class TimedHttpAgent extends http.Agent {
  readonly #connect: ConnectOptions;

  constructor(connect: ConnectOptions) {
    super(agentOptions(connect));
    this.#connect = connect;
  }

  override createConnection(...args: Parameters<http.Agent['createConnection']>) {
    return connectInTime(super.createConnection(...args) as Socket, args[0].host, this.#connect);
  }
}

class TimedHttpsAgent extends https.Agent {
  readonly #connect: ConnectOptions;

  constructor(connect: ConnectOptions) {
    super({ ...agentOptions(connect), ...connect.tls });
    this.#connect = connect;
  }

  override createConnection(...args: Parameters<https.Agent['createConnection']>) {
    return connectInTime(super.createConnection(...args) as Socket, args[0].host, this.#connect);
  }
}

/** Destroys a socket whose TCP connection does not come about in time, with `ConnectTimeoutError`. Gives the socket. */
export function connectInTime<S extends Socket>(
  socket: S,
  host: string | null | undefined,
  { connectTimeoutMs, connected }: Pick<ConnectOptions, 'connectTimeoutMs' | 'connected'>,
): S {
  const name = host ?? 'localhost';
  let timer: TimerHandle;
  const start = (): void => {
    timer ??= patientTimers.setTimeout(() => {
      socket.destroy(new ConnectTimeoutError(name, connectTimeoutMs));
    }, connectTimeoutMs);
  };
  if (isIP(name) === 0) socket.once('lookup', start);
  else start();
  // also on TLS sockets this one means TCP
  socket.once('connect', () => {
    patientTimers.clearTimeout(timer);
    connected();
  });
  socket.once('close', () => patientTimers.clearTimeout(timer));
  return socket;
}

/** Closes the connections of an agent on which nothing runs. */
export function dropIdle(agent: http.Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Closes idle connections now, and those in use as soon as they are free: calls in flight finish. */
export function retire(agent: http.Agent): void {
  agent.maxFreeSockets = 0;
  dropIdle(agent);
}
