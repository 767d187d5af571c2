import type { IncomingMessage } from 'node:http';

/** Says who may see the pages. */
export type Access = (req: IncomingMessage) => boolean | PromiseLike<boolean>;

const FORWARDING = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/**
 * The default: the socket comes from this machine, and no proxy says that it speaks for another. A proxy
 * on this machine that adds none of the headers is not told from a person on it: then give a function of your own.
 */
export function fromThisMachine(req: IncomingMessage): boolean {
  const address = req.socket.remoteAddress ?? '';
  const loopback = /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
  return loopback && FORWARDING.every((header) => req.headers[header] === undefined);
}

/** Hosts that a browser on this machine would name: what DNS rebinding cannot. */
export const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/** The host without its port, in lower case; empty for a header that is missing or odd. */
export function hostOf(req: IncomingMessage): string {
  const match = /^(\[[0-9a-f:.]+\]|[^:/\s]+)(?::\d+)?$/i.exec(req.headers.host ?? '');
  return match?.[1]?.toLowerCase() ?? '';
}

/** True if the browser says that the request comes from a page of this very server. */
export function sameOrigin(req: IncomingMessage): boolean {
  const { origin, host } = req.headers;
  if (origin === undefined || host === undefined) return false;
  try {
    return new URL(origin).host === host.toLowerCase();
  } catch {
    return false;
  }
}
