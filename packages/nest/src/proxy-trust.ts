import type { ProxySetting, ProxyTrust } from '@elimit/node-http';
import type { ExecutionContext } from '@nestjs/common';

interface FrameworkRequest {
  /** Express's. */
  readonly app?: { get(setting: string): unknown };
  /** Fastify's, if it was told of proxies: the sender and whom it forwards for, as far as they are believed. */
  readonly ips?: readonly string[];
}

const FASTIFY_PROXIES: ProxySetting = {
  all: 'trustProxy believes everybody',
  cure: 'name the addresses of your proxies',
  none: 'trustProxy is off',
};

/** As many hops as nobody has, from addresses that are nobody's: those of documents, RFC 5737. */
const HOPS = 32;
const FROM_NOBODY = {
  socket: { remoteAddress: '192.0.2.1' },
  headers: { 'x-forwarded-for': Array.from({ length: HOPS }, (_, i) => `192.0.2.${i + 2}`).join() },
};

/** By the prototype of their requests: Fastify makes one for each application and plugin. */
const trustOfFastify = new WeakMap<object, ProxyTrust>();

/** Whose forwarding headers the application's framework believes. */
export function proxyTrustOf(context: ExecutionContext): ProxyTrust {
  const request = requestIn(context);
  if (request.app === undefined) return fastifyTrustOf(request);
  const setting = request.app.get('trust proxy');
  if (setting === true) return 'all';
  return setting === false || setting === undefined ? 'none' : 'some';
}

/** How it calls its setting; `undefined` for Express. */
export function proxySettingOf(context: ExecutionContext): ProxySetting | undefined {
  return requestIn(context).app === undefined ? FASTIFY_PROXIES : undefined;
}

/** Fastify does not show its `trustProxy`, so it is asked about a request that only someone who believes all would believe. */
function fastifyTrustOf(request: FrameworkRequest): ProxyTrust {
  const kind = Object.getPrototypeOf(request) as object;
  let trust = trustOfFastify.get(kind);
  if (trust === undefined) {
    const { ips } = Object.create(request, { raw: { value: FROM_NOBODY } }) as FrameworkRequest;
    if (ips === undefined) trust = 'none';
    else trust = ips.length > HOPS ? 'all' : 'some';
    trustOfFastify.set(kind, trust);
  }
  return trust;
}

function requestIn(context: ExecutionContext): FrameworkRequest {
  return context.switchToHttp().getRequest<FrameworkRequest>();
}
