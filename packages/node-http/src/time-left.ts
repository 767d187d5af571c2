import type { IncomingMessage } from 'node:http';
import { systemClock } from '@elimit/core';
import { arrivalOf } from './arrival.js';
import { DEADLINE_HEADERS, timeoutOf } from './deadline-headers.js';

/**
 * What is left of the time that a request's caller gave it, in milliseconds, 0 or less if it has passed;
 * `undefined` if it gave none. To be passed on to calls that are made for it: as `carriedTimeoutMs` of a client.
 *
 * @param headerNames - in lower case. @default DEADLINE_HEADERS
 */
export function timeLeftOf(
  req: IncomingMessage,
  headerNames: readonly string[] = DEADLINE_HEADERS,
): number | undefined {
  const timeoutMs = timeoutOf(req, headerNames);
  if (timeoutMs === undefined) return undefined;
  const arrivedUs = arrivalOf(req); // before the clock is read: it may be now
  return timeoutMs - (systemClock.nowUs() - arrivedUs) / 1000;
}
