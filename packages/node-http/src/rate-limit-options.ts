import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AnyRateLimiter,
  booleanOf,
  createRateLimiter,
  functionOf,
  integerIn,
  knownKeys,
  numberIn,
  objectOf,
  oneOf,
  RATE_LIMITER_DEFAULTS,
  type RateDecision,
  type RateLimiterOptions,
  renamed,
  show,
  textOf,
} from '@elimit/core';
import { RATE_HEADER_DRAFTS, type RateHeaderDraft } from './rate-headers.js';

/** What the callbacks of `rateLimit` are given: the framework's own request and response, or its context. */
export type RateCall = readonly unknown[];

/** How the request stands with its limit; on the request as `rateLimit`, unless named otherwise. */
export interface RateLimitInfo {
  /** The most that may be used at once. */
  readonly limit: number;
  /** Of that, used and not yet come in again; whole. */
  readonly used: number;
  /** Whole requests left. */
  readonly remaining: number;
  /** When the limit is whole again, by the wall clock. */
  readonly resetTime: Date;
  readonly key: string;
}

/** What a `handler` is told of the refusal. */
export interface RateRefusal {
  readonly statusCode: number;
  /** When to come back, in milliseconds; at most a day is said. */
  readonly retryAfterMs: number;
  readonly info: RateLimitInfo;
  readonly decision: RateDecision;
}

/** A value, or a promise of it. */
export type Async<T> = T | Promise<T>;

/** The sentence in the ELIMIT body, or a whole body to be sent as JSON. */
export type RateMessage = string | Readonly<Record<string, unknown>>;

/** Options of `rateLimit`: those of a rate limiter, and what is HTTP's about it. Alike in all adapters. */
export interface RateLimitOptions<Call extends RateCall = [IncomingMessage, ServerResponse]>
  extends RateLimiterOptions {
  /** A limiter made before, in place of the options of one. */
  readonly limiter?: AnyRateLimiter | undefined;
  /** What is counted separately: a string; anything else is an error of the request. @default the client's address, IPv6 by subnet */
  readonly keyGenerator?: ((...call: Call) => Async<string>) | undefined;
  /** Bits of the IPv6 subnet that counts as one client, 32 to 128; `false` for single addresses. @default 56 */
  readonly ipv6Subnet?: number | false | undefined;
  /** Tokens that a request costs: at least 0; anything else that a function gives is an error of the request. @default 1 */
  readonly cost?: number | ((...call: Call) => Async<number>) | undefined;
  /** True for requests that go through uncounted; the same `limiter` further on may count them. */
  readonly skip?: ((...call: Call) => Async<boolean>) | undefined;
  /** Answers a refused request in place of the ELIMIT answer. Headers are set already. `limit`'s gets its rejection before `next`. */
  readonly handler?:
    | ((...args: [...Call, next: (error?: unknown) => void, refusal: RateRefusal]) => unknown)
    | undefined;
  /** Text: the sentence in the ELIMIT body. An object: the whole body, as JSON. */
  readonly message?: RateMessage | ((...call: Call) => Async<RateMessage>) | undefined;
  /** Status of a refusal, 400 to 599. @default 429 */
  readonly statusCode?: number | undefined;
  /** `RateLimit` and `RateLimit-Policy`; `true` for the current draft. @default true */
  readonly standardHeaders?: boolean | RateHeaderDraft | undefined;
  /** `X-RateLimit-*`. @default false */
  readonly legacyHeaders?: boolean | undefined;
  /** The policy's name in the headers. @default the limiter's `name`, or such as `100-in-1min` */
  readonly identifier?: string | ((...call: Call) => string) | undefined;
  /** Where the request carries its {@link RateLimitInfo}; `false` for nowhere. @default 'rateLimit' */
  readonly requestPropertyName?: string | false | undefined;
  /** Requests that succeed are given back once they have; not what a dry run let through. @default false */
  readonly skipSuccessfulRequests?: boolean | undefined;
  /** Requests that fail are given back once they have. One whose client left is neither. @default false */
  readonly skipFailedRequests?: boolean | undefined;
  /** @default a status below 400 */
  readonly requestWasSuccessful?: ((...call: Call) => boolean) | undefined;
  /** Warns, once each, of set-ups that do not limit as they seem to. @default true */
  readonly validate?: boolean | undefined;
}

const HTTP_DEFAULTS = {
  limiter: undefined,
  keyGenerator: undefined,
  ipv6Subnet: 56,
  cost: 1,
  skip: undefined,
  handler: undefined,
  message: undefined,
  statusCode: 429,
  standardHeaders: true,
  legacyHeaders: false,
  identifier: undefined,
  requestPropertyName: 'rateLimit',
  skipSuccessfulRequests: false,
  skipFailedRequests: false,
  requestWasSuccessful: undefined,
  validate: true,
} as const satisfies Record<Exclude<keyof RateLimitOptions, keyof RateLimiterOptions>, unknown>;

/** The options once checked. */
export interface ResolvedRateLimit<Call extends RateCall> {
  readonly limiter: AnyRateLimiter;
  readonly keyGenerator: ((...call: Call) => Async<string>) | undefined;
  readonly ipv6Subnet: number | false;
  readonly cost: number | ((...call: Call) => Async<number>);
  readonly skip: ((...call: Call) => Async<boolean>) | undefined;
  readonly handler: RateLimitOptions<Call>['handler'];
  readonly message: RateLimitOptions<Call>['message'];
  readonly statusCode: number;
  readonly draft: RateHeaderDraft | undefined;
  readonly legacyHeaders: boolean;
  readonly identifier: RateLimitOptions<Call>['identifier'];
  readonly requestPropertyName: string | undefined;
  readonly skipSuccessfulRequests: boolean;
  readonly skipFailedRequests: boolean;
  readonly requestWasSuccessful: ((...call: Call) => boolean) | undefined;
  readonly validate: boolean;
  readonly onEvent: RateLimiterOptions['onEvent'];
}

/** @throws TypeError or RangeError that names the option, what it may be, and what it was */
export function resolveRateLimit<Call extends RateCall>(
  options: RateLimitOptions<Call>,
): ResolvedRateLimit<Call> {
  const d = HTTP_DEFAULTS;
  const own: Record<string, unknown> = {};
  const rest: Record<string, unknown> = {};
  for (const [name, known] of Object.entries(RENAMED)) {
    if (Object.hasOwn(objectOf('rateLimit', options), name)) {
      throw new TypeError(`rateLimit.${name} is not an option: ${known}`);
    }
  }
  knownKeys('rateLimit', options, { ...RATE_LIMITER_DEFAULTS, ...d });
  for (const [name, value] of Object.entries(options)) {
    (Object.hasOwn(d, name) ? own : rest)[name] = value;
  }
  for (const name of ['keyGenerator', 'skip', 'handler', 'requestWasSuccessful'] as const) {
    if (options[name] !== undefined) functionOf(`rateLimit.${name}`, options[name]);
  }
  const { cost = d.cost, ipv6Subnet = d.ipv6Subnet, message, identifier } = options;
  const { requestPropertyName = d.requestPropertyName } = options;
  if (typeof cost !== 'function') numberIn('rateLimit.cost', cost, 0, Number.MAX_SAFE_INTEGER);
  if (typeof message === 'string') textOf('rateLimit.message', message);
  else if (message !== undefined && typeof message !== 'function' && !isMessage(message)) {
    const got = show(message);
    throw new TypeError(`rateLimit.message must be text, an object or a function, got ${got}`);
  }
  if (identifier !== undefined && typeof identifier !== 'function') {
    textOf('rateLimit.identifier', identifier);
  }
  return {
    limiter: limiterOf(options.limiter, rest),
    keyGenerator: options.keyGenerator,
    ipv6Subnet:
      ipv6Subnet === false ? false : integerIn('rateLimit.ipv6Subnet', ipv6Subnet, 32, 128),
    cost,
    skip: options.skip,
    handler: options.handler,
    message,
    statusCode: integerIn('rateLimit.statusCode', options.statusCode ?? d.statusCode, 400, 599),
    draft: draftOf(options.standardHeaders ?? d.standardHeaders),
    legacyHeaders: booleanOf('rateLimit.legacyHeaders', options.legacyHeaders ?? d.legacyHeaders),
    identifier: identifier ?? options.limiter?.name ?? options.name,
    requestPropertyName:
      requestPropertyName === false
        ? undefined
        : textOf('rateLimit.requestPropertyName', requestPropertyName),
    skipSuccessfulRequests: booleanOf(
      'rateLimit.skipSuccessfulRequests',
      options.skipSuccessfulRequests ?? d.skipSuccessfulRequests,
    ),
    skipFailedRequests: booleanOf(
      'rateLimit.skipFailedRequests',
      options.skipFailedRequests ?? d.skipFailedRequests,
    ),
    requestWasSuccessful: options.requestWasSuccessful,
    validate: booleanOf('rateLimit.validate', options.validate ?? d.validate),
    onEvent: options.onEvent,
  };
}

/** True for text and for an object, which is not an array. */
export function isMessage(value: unknown): value is RateMessage {
  if (typeof value === 'string') return true;
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function draftOf(value: unknown): RateHeaderDraft | undefined {
  if (value === false) return undefined;
  if (value === true) return 'draft-11';
  return oneOf('rateLimit.standardHeaders', value, RATE_HEADER_DRAFTS);
}

function limiterOf(
  ready: AnyRateLimiter | undefined,
  rest: Record<string, unknown>,
): AnyRateLimiter {
  if (ready === undefined) {
    return renamed('rate', 'rateLimit', () => createRateLimiter(rest as never));
  }
  const { onEvent, ...others } = rest;
  const [name] = Object.keys(others);
  if (name !== undefined) {
    throw new TypeError(`rateLimit.${name} belongs to the limiter: give it to createRateLimiter`);
  }
  if (onEvent !== undefined) functionOf('rateLimit.onEvent', onEvent);
  objectOf('rateLimit.limiter', ready);
  for (const method of ['check', 'refund', 'reset', 'close'] as const) {
    functionOf<unknown>(`rateLimit.limiter.${method}`, ready[method]);
  }
  return ready;
}

/** Names that users of other packages will try. */
const RENAMED = {
  max: 'say limit',
  passOnStoreError: "say storePolicy: 'open'",
  duration: 'say windowMs, in milliseconds',
  points: 'say limit',
} as const;
