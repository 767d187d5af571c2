import { show } from '@elimit/core';
import { type Channel, createChannel } from './channel.js';
import type { ChannelOptions } from './options.js';

/**
 * What adapters take: a channel, or options to make one. Without nodes or naming each call is guarded by the
 * origin it goes to.
 */
export type ChannelTarget = Channel | ChannelOptions;

/**
 * The channel that an adapter was given, or a new one.
 *
 * @throws TypeError for anything that is neither a channel nor options, and for bad options
 */
export function channelOf(target: ChannelTarget = {}): Channel {
  if (!isTarget(target)) {
    throw new TypeError(`target must be a channel, or options to make one, got ${show(target)}`);
  }
  if ('execute' in target) return target;
  const { nodes, naming, unlisted } = target;
  return createChannel(
    nodes === undefined && naming === undefined && unlisted === undefined
      ? { ...target, unlisted: true }
      : target,
  );
}

/** False for what is easily given in its place: an origin, a list of nodes, a guard. */
function isTarget(target: unknown): boolean {
  if (typeof target !== 'object' || target === null) return false;
  if (Array.isArray(target) || target instanceof URL) return false;
  return !('execute' in target) || 'hasNodes' in target;
}

/** What an adapter puts on the errors it throws. */
export interface OutboundFacts {
  /** Stable, for programs. */
  readonly code: string | undefined;
  /** brpc's number for the same thing, where it has one. */
  readonly brpcCode: number | undefined;
  /**
   * The status with which a server should answer when it fails for this error: 504 for what came too late, else
   * 502. Never 503: a client of ours would take that for a reason to ask the next node.
   */
  readonly status: 502 | 504;
}

const LATE = new Set([
  'ERR_TIMEOUT',
  'ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
/** Errors are wrapped in errors: `fetch failed` has its reason in `cause`. */
const DEEPEST_CAUSE = 5;

/**
 * Reads from an error of an outbound call, or from its causes, what the caller's own server should know.
 *
 * @param status - of the answer, if there was one
 */
export function outboundFactsOf(error: unknown, status?: number): OutboundFacts {
  let code: string | undefined;
  let brpcCode: number | undefined;
  let link = error;
  for (let depth = 0; depth < DEEPEST_CAUSE && isObject(link); depth++) {
    if (typeof link.brpcCode === 'number' && brpcCode === undefined) {
      brpcCode = link.brpcCode;
      code = undefined; // ours says more than that of an error around it
    }
    if (typeof link.code === 'string') code ??= link.code;
    link = link.cause;
  }
  const isLate = status === 504 || (status === undefined && code !== undefined && LATE.has(code));
  return { code, brpcCode, status: isLate ? 504 : 502 };
}

function isObject(
  value: unknown,
): value is { code?: unknown; brpcCode?: unknown; cause?: unknown } {
  return typeof value === 'object' && value !== null;
}
