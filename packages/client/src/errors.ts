import { BRPC_CODES, hasBrand } from '@elimit/core';

const NO_ENDPOINT: unique symbol = Symbol.for('@elimit/client/NoEndpointError') as never;
const RECOVERING: unique symbol = Symbol.for('@elimit/client/RecoveringError') as never;
const CLOSED: unique symbol = Symbol.for('@elimit/client/ChannelClosedError') as never;
const CONNECT_TIMEOUT: unique symbol = Symbol.for('@elimit/client/ConnectTimeoutError') as never;

/** Rejects a call for which no endpoint could be used: all isolated, or none known. */
export class NoEndpointError extends Error {
  override readonly name = 'NoEndpointError';
  readonly code = 'ERR_NO_ENDPOINT';
  readonly brpcCode = BRPC_CODES.EHOSTDOWN;
  /**
   * For a server that fails because of it, in the words of `http-errors`, which Express, Koa and Nest understand. A 503
   * would invite clients to ask the next server, which has no endpoint either.
   */
  readonly status = 502;
  readonly statusCode = 502;
  readonly expose = false;
  readonly [NO_ENDPOINT] = true;

  /**
   * @param channel - the channel's name
   * @param endpoints - how many endpoints it knows
   * @param retryAfterMs - time until the first isolation ends, at least 0; a health check may take longer
   * @param cause - why the nodes are not known, where that is so
   * @param origin - the one that the call named, where it did: the others could not have served it
   */
  constructor(
    readonly channel: string,
    readonly endpoints: number,
    readonly retryAfterMs: number,
    cause?: unknown,
    readonly origin?: string,
  ) {
    const nobody = origin === undefined ? `none of ${endpoints} endpoints can` : `${origin} cannot`;
    super(
      endpoints === 0
        ? `channel ${channel} knows no endpoint`
        : `channel ${channel}: ${nobody} be used now; the first isolation ends in ${Math.ceil(retryAfterMs)} ms`,
      cause === undefined ? undefined : { cause },
    );
  }

  /** True for a `NoEndpointError` of this or another copy of the package. */
  static is(value: unknown): value is NoEndpointError {
    return hasBrand(value, NO_ENDPOINT);
  }
}

/** Rejects a call while a cluster comes back: as many pass as its working servers can take. Never retried. */
export class RecoveringError extends Error {
  override readonly name = 'RecoveringError';
  readonly code = 'ERR_RECOVERING';
  readonly brpcCode = BRPC_CODES.EREJECT;
  /** As of a `NoEndpointError`. */
  readonly status = 502;
  readonly statusCode = 502;
  readonly expose = false;
  readonly [RECOVERING] = true;

  constructor(
    readonly channel: string,
    readonly usable: number,
  ) {
    super(`channel ${channel} is recovering with ${usable} usable endpoints`);
  }

  /** True for a `RecoveringError` of this or another copy of the package. */
  static is(value: unknown): value is RecoveringError {
    return hasBrand(value, RECOVERING);
  }
}

/** Rejects calls on a closed channel, those in flight when it closed included. */
export class ChannelClosedError extends Error {
  override readonly name = 'ChannelClosedError';
  readonly code = 'ERR_CHANNEL_CLOSED';
  /** For a server that fails because of it. */
  readonly status = 502;
  readonly statusCode = 502;
  readonly expose = false;
  readonly [CLOSED] = true;

  constructor(readonly channel: string) {
    super(`channel ${channel} is closed`);
  }

  /** True for a `ChannelClosedError` of this or another copy of the package. */
  static is(value: unknown): value is ChannelClosedError {
    return hasBrand(value, CLOSED);
  }
}

/** A TCP connection was not there in time. Told apart from an answer that was not. */
export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
  readonly code = 'ERR_CONNECT_TIMEOUT';
  /** For a server that fails because of it. */
  readonly status = 504;
  readonly statusCode = 504;
  readonly expose = false;
  readonly syscall = 'connect';
  readonly [CONNECT_TIMEOUT] = true;

  constructor(
    readonly host: string,
    readonly connectTimeoutMs: number,
  ) {
    super(`connecting to ${host} took longer than ${connectTimeoutMs} ms`);
  }

  /** True for a `ConnectTimeoutError` of this or another copy of the package. */
  static is(value: unknown): value is ConnectTimeoutError {
    return hasBrand(value, CONNECT_TIMEOUT);
  }
}
