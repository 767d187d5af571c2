import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AnyRateLimiter,
  numberIn,
  type RateDecision,
  type Rejection,
  retryAfterSeconds,
  show,
  systemClock,
  textOf,
} from '@elimit/core';
import { arrivalOf } from './arrival.js';
import { endCalls } from './ending.js';
import type { Next } from './limit-request.js';
import {
  defaultIdentifier,
  type RateFigures,
  setLegacyRateHeaders,
  setRateHeaders,
} from './rate-headers.js';
import { ipKey } from './rate-limit-key.js';
import {
  isMessage,
  type RateCall,
  type RateLimitInfo,
  type RateLimitOptions,
  type RateMessage,
  type RateRefusal,
  type ResolvedRateLimit,
  resolveRateLimit,
} from './rate-limit-options.js';
import { type ProxySetting, type ProxyTrust, RateWarnings } from './rate-limit-warnings.js';
import { giveEarly, type KeyGiver } from './request-keys.js';
import { writeRejection } from './write-rejection.js';

/** What a framework adds to a {@link RequestRateLimit}. */
export interface RateLimitAdapter {
  /** The client's address as the framework sees it, by its own rules for proxies. */
  addressOf(req: IncomingMessage): string | undefined;
  /** Whose forwarding headers the framework believes. @default those of nobody */
  trustOf?(req: IncomingMessage): ProxyTrust;
  /** How the framework calls its setting for proxies; for warnings. @default Express's */
  proxySettingOf?(req: IncomingMessage): ProxySetting | undefined;
  /** Where the request carries its {@link RateLimitInfo}. @default the Node request itself */
  stateOf?(req: IncomingMessage): object;
}

/** What became of a request. `refusal` only if it was refused. */
export interface RateVerdict {
  readonly granted: boolean;
  readonly refusal?: RateRefusal;
}

/** Limits that have counted a request already, on the request itself. */
const COUNTED = Symbol('elimit.rateLimits');
interface Counted {
  [COUNTED]?: object[] | undefined;
}

function markCounted(req: IncomingMessage & Counted, limiter: object): void {
  const counted = req[COUNTED];
  if (counted === undefined) req[COUNTED] = [limiter];
  else counted.push(limiter);
}

function giveCounted(req: IncomingMessage & Counted): void {
  req[COUNTED] = undefined;
}

/** For `giveEarly`, one for each name under which some limit leaves its figures. */
const infoGivers = new Map<string, KeyGiver>();

function infoGiver(name: string): KeyGiver {
  let giver = infoGivers.get(name);
  if (giver === undefined) {
    giver = (req) => {
      if (!(name in req)) (req as unknown as Record<string, unknown>)[name] = undefined;
    };
    infoGivers.set(name, giver);
  }
  return giver;
}

const PASSED: RateVerdict = { granted: true };
/** A wait without end is told as a day: clients want a number. */
const LONGEST_WAIT_MS = 86_400_000;
/** Requests without an address share one bucket. */
const NO_ADDRESS = 'unknown';

/**
 * One `rateLimit(…)`: what all frameworks share. An adapter is a few lines around it:
 *
 * ```ts
 * const limited = new RequestRateLimit<[Context]>(options, { addressOf: … });
 * const verdict = await limited.check(ctx.req, ctx.res, ctx); // counts, and sets the headers
 * if (verdict.refusal) return limited.refuse(ctx.res, verdict.refusal, next, ctx);
 * ```
 */
export class RequestRateLimit<Call extends RateCall = [IncomingMessage, ServerResponse]> {
  // set once
  readonly #resolved: ResolvedRateLimit<Call>;
  readonly #adapter: RateLimitAdapter;
  readonly #warnings: RateWarnings | undefined;
  readonly #bornUs = systemClock.nowUs();
  #met = false;

  /** @throws TypeError or RangeError that names the option, its range and the value */
  constructor(options: RateLimitOptions<Call>, adapter: RateLimitAdapter) {
    this.#resolved = resolveRateLimit(options);
    this.#adapter = adapter;
    const { validate, onEvent, limiter, requestPropertyName } = this.#resolved;
    giveEarly(giveCounted);
    if (requestPropertyName !== undefined && adapter.stateOf === undefined) {
      giveEarly(infoGiver(requestPropertyName));
    }
    this.#warnings = validate ? new RateWarnings(limiter.name, onEvent, adapter) : undefined;
  }

  get limiter(): AnyRateLimiter {
    return this.#resolved.limiter;
  }

  /** The key of an address, as requests are counted by. */
  keyOf(address: string | undefined): string {
    return address === undefined || address === ''
      ? NO_ADDRESS
      : ipKey(address, this.#resolved.ipv6Subnet);
  }

  /**
   * Counts a request and sets its headers; at once unless a callback or a store takes time.
   *
   * @throws what a callback throws, or rejects with it
   */
  check(
    req: IncomingMessage,
    res: ServerResponse,
    ...call: Call
  ): RateVerdict | Promise<RateVerdict> {
    const { skip, keyGenerator, cost } = this.#resolved;
    if (!this.#met) this.#meet(req);
    if (skip === undefined && this.#isCounted(req)) return PASSED;
    if (skip === undefined && keyGenerator === undefined && typeof cost === 'number') {
      return this.#count(req, res, call, this.#addressKey(req), cost);
    }
    return this.#checkByCallbacks(req, res, call);
  }

  /** Counts a request, and lets it go on or answers it: for frameworks of callbacks. */
  handle(req: IncomingMessage, res: ServerResponse, next: Next, ...call: Call): void {
    let verdict: RateVerdict | Promise<RateVerdict>;
    try {
      verdict = this.check(req, res, ...call);
    } catch (error) {
      next(error);
      return;
    }
    if (!(verdict instanceof Promise)) {
      this.#goOn(res, next, call, verdict);
      return;
    }
    void this.#goOnLater(res, next, call, verdict);
  }

  /** Answers a refused request. */
  refuse(res: ServerResponse, refusal: RateRefusal, next: Next, ...call: Call): void {
    const { handler, message } = this.#resolved;
    if (handler !== undefined) void settle(() => handler(...call, next, refusal), next);
    else if (typeof message === 'function') {
      void settle(
        async () => this.#write(res, refusal, messageGiven(await message(...call))),
        next,
      );
    } else {
      try {
        this.#write(res, refusal, message);
      } catch (error) {
        next(error); // of an object that is no JSON
      }
    }
  }

  #write(res: ServerResponse, refusal: RateRefusal, message: RateMessage | undefined): void {
    endCalls(res); // of guards further out: this is an answer of ours, and says nothing of their load
    const { statusCode, retryAfterMs } = refusal;
    if (typeof message === 'object') {
      writeBody(res, statusCode, message);
      return;
    }
    const { name } = this.#resolved.limiter;
    const rejection: Rejection = { admitted: false, reason: 'rate', retryAfterMs, name };
    writeRejection(res, rejection, { statusCode, message });
  }

  #goOn(res: ServerResponse, next: Next, call: Call, verdict: RateVerdict): void {
    if (verdict.refusal === undefined) next();
    else this.refuse(res, verdict.refusal, next, ...call);
  }

  async #goOnLater(
    res: ServerResponse,
    next: Next,
    call: Call,
    asked: Promise<RateVerdict>,
  ): Promise<void> {
    let verdict: RateVerdict;
    try {
      verdict = await asked;
    } catch (error) {
      next(error);
      return;
    }
    this.#goOn(res, next, call, verdict);
  }

  async #checkByCallbacks(
    req: IncomingMessage,
    res: ServerResponse,
    call: Call,
  ): Promise<RateVerdict> {
    const { skip, keyGenerator, cost } = this.#resolved;
    if ((await skip?.(...call)) === true) return PASSED;
    if (this.#isCounted(req)) return PASSED;
    const key =
      keyGenerator === undefined ? this.#addressKey(req) : keyGiven(await keyGenerator(...call));
    const n = typeof cost === 'number' ? cost : costGiven(await cost(...call));
    return this.#count(req, res, call, key, n);
  }

  #count(
    req: IncomingMessage,
    res: ServerResponse,
    call: Call,
    key: string,
    n: number,
  ): RateVerdict | Promise<RateVerdict> {
    const { limiter } = this.#resolved;
    const decision = limiter.check(n, key);
    markCounted(req, limiter);
    if (!(decision instanceof Promise)) return this.#judge(req, res, call, key, n, decision);
    return decision.then((told) => this.#judge(req, res, call, key, n, told));
  }

  #judge(
    req: IncomingMessage,
    res: ServerResponse,
    call: Call,
    key: string,
    n: number,
    decision: RateDecision,
  ): RateVerdict {
    const limit = Math.floor(decision.burst);
    // a hair's breadth is what sums of fractions leave out
    const remaining = Math.floor(decision.remaining + 1e-9);
    const { requestPropertyName, statusCode, skipSuccessfulRequests, skipFailedRequests } =
      this.#resolved;
    const resetTime = new Date(Date.now() + Math.min(decision.resetMs, LONGEST_WAIT_MS));
    const info: RateLimitInfo = { limit, used: limit - remaining, remaining, resetTime, key };
    if (requestPropertyName !== undefined) {
      const state = this.#adapter.stateOf?.(req) ?? req;
      (state as Record<string, unknown>)[requestPropertyName] = info;
    }
    if (!res.headersSent) this.#setHeaders(res, call, info, decision);
    if (decision.granted) {
      // a dry run lets through what it took nothing for; a limiter of somebody else's may not say
      const { taken = true } = decision as Partial<RateDecision>;
      if (taken && (skipSuccessfulRequests || skipFailedRequests)) {
        this.#refundLater(res, call, key, n);
      }
      return PASSED;
    }
    const retryAfterMs = Math.min(LONGEST_WAIT_MS, Math.max(1, Math.ceil(decision.retryAfterMs)));
    if (!res.headersSent) res.setHeader('Retry-After', retryAfterSeconds(retryAfterMs));
    return { granted: false, refusal: { statusCode, retryAfterMs, info, decision } };
  }

  #setHeaders(res: ServerResponse, call: Call, info: RateLimitInfo, decision: RateDecision): void {
    const { draft, legacyHeaders, identifier, limiter } = this.#resolved;
    if (draft === undefined && !legacyHeaders) return;
    const quota = Math.floor(decision.burst);
    const windowSeconds = limiter.rate > 0 ? Math.ceil(decision.burst / limiter.rate) : 0;
    const name =
      typeof identifier === 'function' ? identifierGiven(identifier(...call)) : identifier;
    const figures: RateFigures = {
      identifier: name ?? defaultIdentifier(quota, windowSeconds),
      quota,
      windowSeconds,
      remaining: info.remaining,
      resetSeconds: Math.min(LONGEST_WAIT_MS / 1000, Math.ceil(decision.resetMs / 1000)),
      partition: draft === 'draft-8' ? partitionOf(info.key) : '',
    };
    if (draft !== undefined) setRateHeaders(res, draft, figures);
    if (legacyHeaders) setLegacyRateHeaders(res, figures, Date.now());
  }

  /** Only a whole answer tells how a request ended: one whose client left is neither success nor failure. */
  #refundLater(res: ServerResponse, call: Call, key: string, n: number): void {
    const { skipSuccessfulRequests, skipFailedRequests, requestWasSuccessful, limiter } =
      this.#resolved;
    res.once('finish', () => {
      try {
        const isSuccess = requestWasSuccessful?.(...call) ?? res.statusCode < 400;
        if (isSuccess ? skipSuccessfulRequests : skipFailedRequests) limiter.refund(n, key);
      } catch {
        // it stays counted: inside of this event there is nobody to tell
      }
    });
  }

  #addressKey(req: IncomingMessage): string {
    const address = this.#adapter.addressOf(req);
    const warnings = this.#warnings;
    if (warnings?.isWatching === true) {
      warnings.look(address, req);
    }
    return this.keyOf(address);
  }

  /** A limit that is mounted twice in a request's way counts it once. */
  #isCounted(req: IncomingMessage & Counted): boolean {
    if (req[COUNTED]?.includes(this.#resolved.limiter) !== true) return false;
    this.#warnings?.twice();
    return true;
  }

  /** The first request. */
  #meet(req: IncomingMessage): void {
    this.#met = true;
    if (this.#bornUs > arrivalOf(req)) this.#warnings?.madeLate();
  }
}

// what callbacks give, which untyped code may give as it likes

function keyGiven(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new TypeError(`rateLimit.keyGenerator must give a string, got ${show(key)}`);
}

function costGiven(cost: unknown): number {
  return numberIn('what rateLimit.cost gives', cost, 0, Number.MAX_SAFE_INTEGER);
}

/** `undefined` asks for the default, as an option does. */
function identifierGiven(identifier: unknown): string | undefined {
  return identifier === undefined
    ? undefined
    : textOf('what rateLimit.identifier gives', identifier);
}

function messageGiven(message: unknown): RateMessage | undefined {
  if (message === undefined || isMessage(message)) return message;
  throw new TypeError(`rateLimit.message must give text or an object, got ${show(message)}`);
}

/** A callback may be async: what it throws or rejects with is the framework's. */
async function settle(callback: () => unknown, next: Next): Promise<void> {
  try {
    await callback();
  } catch (error) {
    next(error);
  }
}

function partitionOf(key: string): string {
  return createHash('sha256').update(key).digest('base64').slice(0, 12);
}

function writeBody(res: ServerResponse, statusCode: number, body: RateMessage): void {
  if (res.headersSent || res.writableEnded) return;
  const text = JSON.stringify(body);
  res.statusCode = statusCode;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  res.end(text);
}
