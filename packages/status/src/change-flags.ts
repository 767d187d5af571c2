import type { IncomingMessage } from 'node:http';
import { type OnEvent, show, tell } from '@elimit/core';
import { hostOf, sameOrigin } from './access.js';
import type { Reading } from './sampler.js';

const MOST_BYTES = 16_384;

/** What a change is answered with. */
export interface ChangeAnswer {
  readonly status: number;
  readonly message: string;
}

export interface ChangeRules {
  readonly allowChanges: boolean;
  readonly allowedHosts: readonly string[];
  readonly onEvent: OnEvent;
}

/**
 * Sets live options of one source. Asked of a browser: JSON, which a form cannot send, from a page of this
 * server (Origin), under a name that is ours (Host), so that no other site can make a visitor's browser do it.
 */
export async function changeFlags(
  req: IncomingMessage,
  read: () => readonly Reading[],
  rules: ChangeRules,
): Promise<ChangeAnswer> {
  if (!rules.allowChanges) return { status: 403, message: 'not saved: allowChanges is off' };
  if (!rules.allowedHosts.includes(hostOf(req))) {
    return { status: 403, message: `not saved: host ${show(hostOf(req))} is not in allowedHosts` };
  }
  if (!sameOrigin(req)) return { status: 403, message: 'not saved: not from this page' };
  if (!/^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? '')) {
    return { status: 415, message: 'not saved: the body must be application/json' };
  }
  const body = await bodyOf(req);
  if (body === undefined) return { status: 413, message: `not saved: over ${MOST_BYTES} bytes` };
  const wanted = parse(body);
  if (wanted === undefined) {
    return {
      status: 400,
      message: 'not saved: expected { "type", "name", "set": { option: value } }',
    };
  }
  const { type, name, set } = wanted;
  const found = read().find((reading) => reading.snapshot.type === type && reading.name === name);
  if (found?.source.configure === undefined) {
    return { status: 404, message: `not saved: there is no ${type} ${show(name)}` };
  }
  try {
    found.source.configure(set);
  } catch (error) {
    return { status: 400, message: `not saved: ${(error as Error).message}` };
  }
  tell(rules.onEvent, { type: 'configure', name, changed: set });
  return { status: 200, message: 'saved' };
}

interface Change {
  readonly type: string;
  readonly name: string;
  readonly set: Readonly<Record<string, unknown>>;
}

function parse(body: string): Change | undefined {
  try {
    const { type, name, set } = JSON.parse(body) as Partial<Change>;
    if (typeof type !== 'string' || typeof name !== 'string') return undefined;
    if (typeof set !== 'object' || Array.isArray(set) || Object.keys(set).length === 0)
      return undefined;
    return { type, name, set };
  } catch {
    return undefined;
  }
}

/** The body as text; `undefined` if it is too long, or if a parser before us gave something else than an object. */
async function bodyOf(
  req: IncomingMessage & { readonly body?: unknown },
): Promise<string | undefined> {
  // a body parser in front has read the stream already
  if (req.readableEnded) return JSON.stringify(req.body ?? '');
  let bytes = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
