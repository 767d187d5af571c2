import type { ServerResponse } from 'node:http';

/**
 * The forms that the IETF draft `draft-ietf-httpapi-ratelimit-headers` has had. `draft-8` gave it its
 * present shape; later drafts, -11 the newest, differ in the partition key, which is optional there.
 */
export type RateHeaderDraft = 'draft-6' | 'draft-7' | 'draft-8' | 'draft-11';
export const RATE_HEADER_DRAFTS = ['draft-6', 'draft-7', 'draft-8', 'draft-11'] as const;

/** What the headers say of one limit. */
export interface RateFigures {
  /** Names the policy. */
  readonly identifier: string;
  /** The quota: whole requests. */
  readonly quota: number;
  /** Whole seconds in which the quota comes in; 0 if it never does. */
  readonly windowSeconds: number;
  /** Whole requests left. */
  readonly remaining: number;
  /** Whole seconds until the quota is whole again. */
  readonly resetSeconds: number;
  /** Stands for the key, without giving it away; draft-8 only. */
  readonly partition: string;
}

/** A structured-field string (RFC 8941): printable ASCII, quotes and backslashes escaped; other characters become `?`. */
export function structuredString(text: string): string {
  return `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** `100-in-1min`: what a limit without a name is called. */
export function defaultIdentifier(quota: number, windowSeconds: number): string {
  if (windowSeconds === 0) return `${quota}-once`;
  for (const [unit, seconds] of UNITS) {
    if (windowSeconds % seconds === 0) return `${quota}-in-${windowSeconds / seconds}${unit}`;
  }
  return `${quota}-in-${windowSeconds}sec`;
}

const UNITS = [
  ['day', 86_400],
  ['hr', 3600],
  ['min', 60],
] as const;

/** Sets the draft's headers. Several limits on one request add up where the form is a list; else the tightest one is told. */
export function setRateHeaders(
  res: ServerResponse,
  draft: RateHeaderDraft,
  figures: RateFigures,
): void {
  const { quota, windowSeconds, remaining, resetSeconds, partition } = figures;
  const window = windowSeconds > 0 ? `;w=${windowSeconds}` : '';
  if (draft === 'draft-6' || draft === 'draft-7') {
    append(res, 'RateLimit-Policy', `${quota}${window}`);
    if (!isTightest(res, remaining)) return;
    if (draft === 'draft-7') {
      res.setHeader('RateLimit', `limit=${quota}, remaining=${remaining}, reset=${resetSeconds}`);
      return;
    }
    res.setHeader('RateLimit-Limit', `${quota}`);
    res.setHeader('RateLimit-Remaining', `${remaining}`);
    res.setHeader('RateLimit-Reset', `${resetSeconds}`);
    return;
  }
  const name = structuredString(figures.identifier);
  const space = draft === 'draft-8' ? ' ' : '';
  const key = draft === 'draft-8' ? `; pk=:${partition}:` : '';
  const policyWindow = windowSeconds > 0 ? `;${space}w=${windowSeconds}` : '';
  append(res, 'RateLimit-Policy', `${name};${space}q=${quota}${policyWindow}${key}`);
  append(res, 'RateLimit', `${name};${space}r=${remaining};${space}t=${resetSeconds}`);
}

/** `X-RateLimit-*`, as most clients have known them for years: the reset is a time, in seconds since 1970. */
export function setLegacyRateHeaders(
  res: ServerResponse,
  { quota, remaining, resetSeconds }: RateFigures,
  wallMs: number,
): void {
  const told = res.getHeader('X-RateLimit-Remaining');
  if (told !== undefined && Number(told) <= remaining) return;
  res.setHeader('X-RateLimit-Limit', `${quota}`);
  res.setHeader('X-RateLimit-Remaining', `${remaining}`);
  res.setHeader('X-RateLimit-Reset', `${Math.ceil(wallMs / 1000) + resetSeconds}`);
}

function append(res: ServerResponse, name: string, item: string): void {
  const before = res.getHeader(name);
  res.setHeader(name, before === undefined ? item : `${String(before)}, ${item}`);
}

function isTightest(res: ServerResponse, remaining: number): boolean {
  const six = res.getHeader('RateLimit-Remaining');
  const seven = /remaining=(\d+)/.exec(String(res.getHeader('RateLimit') ?? ''))?.[1];
  const told = six ?? seven;
  return told === undefined || remaining < Number(told);
}
