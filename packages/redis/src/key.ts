import { createHash } from 'node:crypto';

/** What stands in a Redis key as it is: no braces, which would choose the slot, no control characters. */
const PLAIN = /^[\w.:@/*+= -]{1,120}$/;

/** One Redis key for each key of a limiter: readable where it can be, else hashed. */
export function redisKey(prefix: string, limiter: string, key: string): string {
  const id = `${limiter}:${key}`;
  if (PLAIN.test(id) && !limiter.includes(':')) return `${prefix}:${id}`;
  // the length says where the name ends, so that no two pairs become one text
  const hash = createHash('sha256').update(`${limiter.length}:${id}`).digest('base64url');
  return `${prefix}:#${hash}`;
}
