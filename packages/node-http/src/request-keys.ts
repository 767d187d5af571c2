import type { IncomingMessage, ServerResponse } from 'node:http';

/** Gives a request and its response properties before anybody else sees them. */
export type KeyGiver = (req: IncomingMessage, res: ServerResponse) => void;

const givers: KeyGiver[] = [];

/**
 * Has `give` called for each request inside its own event, ahead of the framework. Asking twice is asking once.
 *
 * Express changes the prototypes of each request and response. V8 shares no hidden class any more between objects that
 * get a new property after that: each request then has classes of its own, no inline cache ever hits, and every access
 * to either object goes the slow way, in Express and in Node. A property that is there before, whatever its value,
 * costs nothing later. So what this package and an adapter's framework hang on them is given early, as `undefined`.
 */
export function giveEarly(give: KeyGiver): void {
  if (!givers.includes(give)) givers.push(give);
}

/** Calls all that were handed to {@link giveEarly}, in that order. */
export function giveKeys(req: IncomingMessage, res: ServerResponse): void {
  for (const give of givers) give(req, res);
}
