import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { dispatchThread } from './dispatch-thread.js';
import { giveExpressKeysEarly, isExpressApp } from './express-keys.js';
import { giveKeys } from './request-keys.js';

// a property, not a WeakMap: those make every collection of young objects look at every request in flight
const ARRIVAL: unique symbol = Symbol('elimit.arrival');

/** What is known of a request from outside. */
export interface Arrival {
  /** In microseconds, on the system clock. */
  readonly atUs: number;
  /** It has met a dispatch queue: further limiters on its way let it pass. */
  dispatched: boolean;
  /** It has its properties (see `giveEarly`), or it is too late for them. */
  hasKeys: boolean;
}

interface StampedRequest extends IncomingMessage {
  [ARRIVAL]?: Arrival;
}

const servers = new WeakSet<object>();

function stamp(req: StampedRequest, hasKeys: boolean): Arrival {
  const arrival = { atUs: dispatchThread().monitor.arrived(), dispatched: false, hasKeys };
  req[ARRIVAL] = arrival;
  return arrival;
}

/** Stamps a request inside its own event, and no more: one that is refused ahead of its framework needs no properties. */
export function stampArrival(req: StampedRequest): void {
  if (req[ARRIVAL] === undefined) stamp(req, false);
}

/** Stamps a request inside its own event, and gives it its properties ahead of its framework; a second time does nothing. */
export function stampRequest(req: StampedRequest, res: ServerResponse): void {
  const arrival = req[ARRIVAL] ?? stamp(req, false);
  if (arrival.hasKeys) return;
  arrival.hasKeys = true;
  giveKeys(req, res);
}

/** With the first request all listeners are there. */
function lookForExpress(this: Server): void {
  if (this.listeners('request').some(isExpressApp)) giveExpressKeysEarly();
}

function countConnection(): void {
  dispatchThread().monitor.connected();
}

/** Stamps every request of a server from now on, ahead of all its other listeners. Once for each server. */
export function stampArrivals(server: Server): void {
  if (servers.has(server)) return;
  servers.add(server);
  server.prependListener('connection', countConnection);
  server.prependListener('request', stampRequest);
  server.prependOnceListener('request', lookForExpress);
  // a listener of our own would stop Node from sending `100 Continue` by itself
  if (server.listenerCount('checkContinue') > 0) {
    server.prependListener('checkContinue', stampRequest);
  }
}

/** The arrival of a request; for one that no stamp listener has seen, made now. */
export function arrivalRecord(req: IncomingMessage): Arrival {
  const known = (req as StampedRequest)[ARRIVAL];
  if (known !== undefined) return known;
  const server = serverOf(req);
  if (server !== undefined && !servers.has(server)) {
    stampArrivals(server);
    countConnection(); // one may have come in this very turn, before anybody counted
  }
  return stamp(req, true); // its framework has seen it first
}

/**
 * When a request arrived, in microseconds on the system clock: the time of its `request` event, less
 * half of the time in which the loop had not looked before.
 *
 * The first call for a server puts a listener in front of its others; the request that brought it here
 * counts as having arrived now.
 */
export function arrivalOf(req: IncomingMessage): number {
  return arrivalRecord(req).atUs;
}

/** `http` notes the server on each socket; types and hand-made requests know nothing of it. */
function serverOf(req: IncomingMessage): Server | undefined {
  const socket = req.socket as { readonly server?: unknown } | undefined;
  const server = socket?.server as Partial<Server> | undefined;
  return typeof server?.prependListener === 'function' ? (server as Server) : undefined;
}
