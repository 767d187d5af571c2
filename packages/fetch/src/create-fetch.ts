import {
  type Attempt,
  type Channel,
  type ChannelTarget,
  channelOf,
  watchedUpload,
} from '@elimit/client';
import { fetch as undiciFetch } from 'undici';
import { errorFor } from './errors.js';
import { type FetchInit, type FetchRequest, readRequest } from './fetch-request.js';
import { TryDispatcher } from './try-dispatcher.js';

const SEE_OTHER = 303;
const REDIRECTS = new Set([301, 302, SEE_OTHER, 307, 308]);

/** `fetch`, with a few more things to say in its second argument. */
export type Fetch = (input: string | URL | Request, init?: FetchInit) => Promise<Response>;

/**
 * A `fetch` whose calls go through a channel. Relative URLs go to its nodes; absolute ones go where they say,
 * guarded by their origin. Like any `fetch` it resolves for every status, and rejects with a TypeError that has a
 * `cause`; here that error has `code`, `brpcCode` and `status`, too. A signal rejects with its own reason.
 *
 * The channel's time ends with the headers of the answer; a `signal` bounds the body as well.
 *
 * @param target - a channel, or options to make one. @default each origin is guarded for itself
 */
export function createFetch(target?: ChannelTarget): Fetch {
  const channel = channelOf(target);
  return async function fetch(input, init) {
    return call(channel, readRequest(channel, input, init));
  };
}

async function call(channel: Channel, request: FetchRequest): Promise<Response> {
  const { signal } = request.init;
  try {
    return await channel.execute((attempt) => trySend(attempt, request), {
      ...request.rules,
      signal: signal ?? undefined,
      errorCost: true,
      discard: (ended) => {
        if (ended.ok) ended.value.body?.cancel().catch(() => {});
      },
    });
  } catch (error) {
    throw errorFor(error, signal);
  }
}

/** The signal given to undici is the caller's, so that it ends the body, too; the dispatcher ends the try. */
async function trySend(attempt: Attempt, { path, init, rules }: FetchRequest): Promise<Response> {
  const dispatcher = new TryDispatcher(attempt);
  // put together as text: as a relative URL, a path that begins with two slashes would name a host
  const url = rules.origin === undefined ? attempt.endpoint.url.origin + path : path;
  try {
    const given = { ...init, body: watchedUpload(attempt, init.body), dispatcher } as object;
    return await undiciFetch(url, given);
  } catch (error) {
    // a bad header, a body that was used already: it never came to sending
    if (!dispatcher.isUsed || mayNotFollow(dispatcher.status, init.redirect, rules.replayable)) {
      attempt.callersFault();
    }
    throw error;
  }
}

/** True for a redirect that the caller has forbidden, or that cannot be followed with a body that is gone. */
function mayNotFollow(status: number, redirect: unknown, replayable: boolean | undefined): boolean {
  if (!REDIRECTS.has(status)) return false;
  return redirect === 'error' || (replayable === false && status !== SEE_OTHER);
}
