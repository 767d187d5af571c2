import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type Guard, having, objectOf } from '@elimit/core';
import { stampArrival, stampArrivals } from './arrival.js';
import type { LimitOptions } from './limit-options.js';
import { type LimitTarget, RequestLimit } from './limit-request.js';

/** The options of {@link protect}: the limit, and those that all adapters share. */
export interface ProtectOptions extends LimitOptions {
  /** A max-concurrency value for a guard of its own, or a guard made before. @default 'auto' */
  readonly limit?: LimitTarget | undefined;
}

/** A protected server. */
export interface Protection {
  /** The guard in front of it; `undefined` if `limit` was a set of guards. */
  readonly guard: Guard | undefined;
  /** Lets everything through again. What was admitted before ends as it would have. */
  close(): void;
}

/**
 * Limits how many requests a bare `http.Server` serves at once, in front of whatever framework listens on
 * it: the others are refused before anything is routed or parsed. The cheapest place to say no.
 *
 * Works by the server's own `emit`, since a listener in front cannot stop those behind it. A client that
 * asks leave to send its body (`Expect: 100-continue`) gets it once it is admitted.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function protect(server: Server, options: ProtectOptions = {}): Protection {
  having('server', server, ['emit', 'prependListener']);
  const { limit = 'auto', ...limitOptions } = objectOf('limit', options);
  const limited = new RequestLimit(limit, limitOptions, {
    defaultName: 'server',
    methodNameOf: () => undefined, // a bare server has no routes
  });
  stampArrivals(server);
  // without a listener Node would say `100 Continue` before asking anybody
  server.on('checkContinue', continueListener);

  const inner = server.emit.bind(server) as Emit;
  const before = Object.getOwnPropertyDescriptor(server, 'emit');
  let protecting = true;

  const emit: Emit = function emit(event, ...args) {
    const asksLeave = event === 'checkContinue';
    if (!protecting || !(event === 'request' || asksLeave)) return inner(event, ...args);
    const [req, res] = args as [IncomingMessage, ServerResponse];
    stampArrival(req);
    limited.handle(req, res, (error) => {
      if (error !== undefined) fail(res);
      else if (asksLeave && !asksOthers(server)) {
        res.writeContinue();
        inner('request', req, res);
      } else inner(event, req, res);
    });
    return true;
  };
  server.emit = emit as Server['emit'];

  return {
    guard: limited.guard,
    close() {
      if (!protecting) return;
      protecting = false;
      server.off('checkContinue', continueListener);
      // somebody who has wrapped this since keeps it, as a mere passage
      if (server.emit !== emit) return;
      delete (server as Partial<Server>).emit;
      if (before !== undefined) Object.defineProperty(server, 'emit', before);
    },
  };
}

type Emit = (event: string | symbol, ...args: unknown[]) => boolean;

/** Stands there to be counted; `emit` above does its work. */
function continueListener(): void {}

/** True if somebody wants to answer `Expect: 100-continue` himself. */
function asksOthers(server: Server): boolean {
  return server.listeners('checkContinue').some((listener) => listener !== continueListener);
}

/** A handler of refusals has failed, and there is no framework to tell. */
function fail(res: ServerResponse): void {
  if (res.headersSent) res.destroy();
  else res.writeHead(500).end();
}
