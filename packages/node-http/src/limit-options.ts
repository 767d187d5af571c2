import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  booleanOf,
  functionOf,
  integerIn,
  knownKeys,
  type OnEvent,
  type Priority,
  type Random,
  type Registry,
  type Rejection,
  show,
  textOf,
} from '@elimit/core';
import { DEADLINE_HEADERS } from './deadline-headers.js';
import {
  ENDING_DEFAULTS,
  type EndingOptions,
  type ResolvedEndingOptions,
  resolveEndingOptions,
} from './ending-options.js';

/** The options of `limit`, alike in all adapters. */
export interface LimitOptions<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> extends EndingOptions<Req, Res> {
  /**
   * The guard's name in snapshots, metrics and events; with `createGuards`, the method's. Give one to each of several limits
   * of values: no route names them, and in metrics the second `app` is `app#2`.
   * @default 'app', for `protect` 'server', for `createGuards` on a route its method and template
   */
  readonly name?: string | undefined;
  /** True for requests that go through unlimited and uncounted: health checks, long polls. */
  readonly skip?: ((req: Req, res: Res) => boolean) | undefined;
  /** Answers a refused request, instead of the ELIMIT answer. `next` goes on as if nothing had been. May be async. */
  readonly handler?:
    | ((req: Req, res: Res, rejection: Rejection, next: (error?: unknown) => void) => unknown)
    | undefined;
  /** Status of a refusal, 400 to 599. @default 503 */
  readonly statusCode?: number | undefined;
  /** The sentence in the body of a refusal. @default the sentence for the reason */
  readonly message?: string | undefined;
  /**
   * A deadline for every call, in whole milliseconds from its arrival, at least 1: a call that cannot be answered by then
   * is refused. A handler that has started is neither stopped nor answered for. A header can only shorten it.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Names of the headers that carry a call's deadline; `false` for none.
   * @default ['grpc-timeout', 'x-envoy-expected-rq-timeout-ms', 'x-request-timeout-ms']
   */
  readonly deadlineHeaders?: readonly string[] | false | undefined;
  /** A call's class; under pressure the lower ones go first. No header is read unless this function does. @default 'default' */
  readonly priority?: ((req: Req) => Priority) | undefined;
  /** `false`: a handler starts in its request's own event, whatever stands unread at the sockets. @default true */
  readonly dispatch?: boolean | undefined;
  /** Most admitted requests that may wait on this thread for their handlers, 1 to 100 000. @default 1000 */
  readonly maxQueued?: number | undefined;
  /** Decides and counts, but lets every request through. @default false */
  readonly dryRun?: boolean | undefined;
  /** Hears refusals (sampled), changed settings and warnings. */
  readonly onEvent?: OnEvent | undefined;
  /** For jitter. @default the process's generator */
  readonly random?: Random | undefined;
  /** Where the guard is listed; `false` for nowhere. @default the process's registry */
  readonly registry?: Registry | false | undefined;
}

/** Options that belong to the guard that `limit` makes: a ready-made guard has had its own. */
const GUARDS_OWN = ['dryRun', 'random', 'registry'] as const;

const LIMIT_DEFAULTS: Record<keyof LimitOptions, unknown> = {
  name: undefined,
  skip: undefined,
  handler: undefined,
  statusCode: undefined,
  message: undefined,
  timeoutMs: undefined,
  deadlineHeaders: DEADLINE_HEADERS,
  priority: undefined,
  dispatch: true,
  maxQueued: 1000,
  dryRun: false,
  onEvent: undefined,
  random: undefined,
  registry: undefined,
  ...ENDING_DEFAULTS,
};

/** The options once checked; those of the guard are checked by the guard. */
export interface ResolvedLimitOptions {
  readonly deadlineHeaders: readonly string[];
  readonly timeoutMs: number | undefined;
  readonly dispatch: boolean;
  readonly maxQueued: number;
  readonly ending: ResolvedEndingOptions;
}

/**
 * @param readyMade - true if the guard was made before: then it has its own `dryRun`, `random` and `registry`
 * @throws TypeError or RangeError that names the option, what it may be, and what it was
 */
export function resolveLimitOptions<Req extends IncomingMessage, Res extends ServerResponse>(
  options: LimitOptions<Req, Res>,
  readyMade: boolean,
): ResolvedLimitOptions {
  knownKeys('limit', options, LIMIT_DEFAULTS);
  for (const key of GUARDS_OWN) {
    if (readyMade && options[key] !== undefined) {
      throw new TypeError(
        `limit.${key} belongs to the guard: give it to createGuard or createGuards`,
      );
    }
  }
  for (const key of ['skip', 'handler', 'priority', 'onEvent'] as const) {
    if (options[key] !== undefined) functionOf(`limit.${key}`, options[key]);
  }
  if (options.name !== undefined) textOf('limit.name', options.name);
  if (options.message !== undefined) textOf('limit.message', options.message);
  if (options.dryRun !== undefined) booleanOf('limit.dryRun', options.dryRun);
  if (options.statusCode !== undefined) integerIn('limit.statusCode', options.statusCode, 400, 599);
  const { timeoutMs } = options;
  if (timeoutMs !== undefined) integerIn('limit.timeoutMs', timeoutMs, 1, Number.MAX_SAFE_INTEGER);
  return {
    deadlineHeaders: headerNames(options.deadlineHeaders ?? DEADLINE_HEADERS),
    timeoutMs,
    dispatch: booleanOf('limit.dispatch', options.dispatch ?? true),
    maxQueued: integerIn('limit.maxQueued', options.maxQueued ?? 1000, 1, 100_000),
    // asked about the requests of its own adapter only
    ending: resolveEndingOptions('limit', options as unknown as EndingOptions),
  };
}

function headerNames(names: unknown): readonly string[] {
  if (names === false) return [];
  if (!Array.isArray(names)) {
    throw new TypeError(
      `limit.deadlineHeaders must be an array of names or false, got ${show(names)}`,
    );
  }
  return names.map((name: unknown, i) => textOf(`limit.deadlineHeaders[${i}]`, name).toLowerCase());
}
