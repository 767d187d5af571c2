import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type {
  Clock,
  Guard,
  Guards,
  MaxConcurrency,
  OnEvent,
  Priority,
  Registry,
  Rejection,
  Timers,
} from '@elimit/core';

/**
 * A handler, whatever the framework. It answers `res` by itself and returns nothing, or it returns a text,
 * which the framework sends in its own way. It may throw or reject; the framework's own error path is then under test.
 */
export type SuiteHandler = (
  req: IncomingMessage,
  res: ServerResponse,
) => string | undefined | Promise<string | undefined>;

/** The options that the suite gives to `limit`. */
export interface SuiteLimitOptions {
  readonly name?: string;
  readonly skip?: (req: IncomingMessage) => boolean;
  readonly statusCode?: number;
  readonly message?: string;
  readonly timeoutMs?: number;
  readonly deadlineHeaders?: readonly string[] | false;
  readonly priority?: (req: IncomingMessage) => Priority;
  readonly dryRun?: boolean;
  readonly onEvent?: OnEvent;
  readonly registry?: Registry;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly drainHoldMs?: number;
  readonly abandonedHoldMs?: number;
  readonly maxHoldMs?: number;
  readonly maxBodies?: number;
  readonly bodyHoldMs?: number;
  readonly maxStreams?: number;
  readonly isFailure?: (req: IncomingMessage, res: ServerResponse) => boolean;
}

/** One `limit(target, options)`. The same object in two places means the same middleware in two places. */
export interface SuiteLimit {
  readonly target: MaxConcurrency | Guard | Guards;
  readonly options?: SuiteLimitOptions;
  /** To be given to `limit` as its `handler`, in the framework's own form: answers with this status and text. */
  readonly refuseWith?: (rejection: Rejection) => { status: number; text: string };
}

/** A service for the suite. */
export interface SuiteApp {
  /** Runs around everything, in front of the limits. */
  readonly around?: (req: IncomingMessage, next: () => void) => void;
  /** In front of all routes, in this order. */
  readonly limits?: readonly SuiteLimit[];
  /** By path template, any method. */
  readonly routes: Readonly<Record<string, SuiteHandler>>;
  /** In front of one route only, by path template. */
  readonly routeLimits?: Readonly<Record<string, SuiteLimit>>;
}

/** A service that runs. */
export interface SuiteServer {
  readonly server: Server;
  readonly port: number;
  close(): Promise<void>;
}

/** A server that has been told to listen, once it does. Closing it closes its connections. */
export async function suiteServer(server: Server): Promise<SuiteServer> {
  if (!server.listening) await once(server, 'listening');
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** What an adapter brings to the suite. */
export interface ServerAdapterHarness {
  readonly name: string;
  /** Starts the service on a free port of 127.0.0.1. */
  start(app: SuiteApp): Promise<SuiteServer>;
  /** The adapter's `signalOf`, for the raw request. */
  signalOf(req: IncomingMessage): AbortSignal;
  /** What becomes of an async handler that rejects: an error answer, or (Express 4) nothing at all. */
  readonly rejection: 'answered' | 'unanswered';
  /** The name that `limit(createGuards(…))` gives to a GET route by itself. */
  methodName(path: string): string;
  /** Cases in which this adapter differs, by name, with the reason; its README says them too. Two at most. */
  readonly exceptions?: Readonly<Record<string, string>>;
}

/** One behaviour. `run` rejects with what is wrong. */
export interface SuiteCase {
  readonly name: string;
  run(): Promise<void>;
}
