import {
  booleanOf,
  functionOf,
  having,
  knownKeys,
  numberIn,
  type OnEvent,
  processRegistry,
  type Registry,
  show,
  systemTimers,
  type Timers,
} from '@elimit/core';
import { type Access, fromThisMachine, LOCAL_HOSTS } from './access.js';

/** What the status pages show, and to whom. */
export interface StatusOptions {
  /** Path in front of the pages, where no framework strips it: `/elimit`. Starts with a slash, ends without. @default '' */
  readonly basePath?: string | undefined;
  /**
   * Who may see the pages.
   * @default requests from this machine that no proxy forwarded
   */
  readonly access?: Access | undefined;
  /** Lets those who may see the pages change live options through `/flags`. @default false */
  readonly allowChanges?: boolean | undefined;
  /** Host names under which options may be changed, without port. @default ['localhost', '127.0.0.1', '[::1]'] */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Share of calls refused over the last five seconds from which `/overloaded` answers 503, above 0 to 1. @default 0.5 */
  readonly overloadedAt?: number | undefined;
  /** Hears of every change made through the pages. */
  readonly onEvent?: OnEvent | undefined;
  /** Whose members are shown. @default the process's registry */
  readonly registry?: Registry | undefined;
  /** For the sample a second. @default systemTimers */
  readonly timers?: Timers | undefined;
}

export type ResolvedStatusOptions = {
  [K in keyof Required<StatusOptions>]: Exclude<StatusOptions[K], undefined>;
};

/** What {@link StatusOptions} are if nothing is said. */
export const STATUS_DEFAULTS = {
  basePath: '',
  access: fromThisMachine,
  allowChanges: false,
  allowedHosts: LOCAL_HOSTS,
  overloadedAt: 0.5,
  onEvent: () => undefined,
  registry: undefined,
  timers: systemTimers,
} as const;

/** @throws TypeError or RangeError that names the option, its range and the value */
export function resolveStatusOptions(options: StatusOptions): ResolvedStatusOptions {
  knownKeys('status', options, STATUS_DEFAULTS);
  const basePath = options.basePath ?? STATUS_DEFAULTS.basePath;
  if (typeof basePath !== 'string' || !/^(\/[\w.~-]+)*$/.test(basePath)) {
    throw new RangeError(
      `status.basePath must be empty or a path like /elimit, got ${show(basePath)}`,
    );
  }
  const hosts: unknown = options.allowedHosts ?? STATUS_DEFAULTS.allowedHosts;
  if (!Array.isArray(hosts) || hosts.some((host) => typeof host !== 'string' || host === '')) {
    throw new TypeError(`status.allowedHosts must be an array of host names, got ${show(hosts)}`);
  }
  return {
    basePath,
    access: functionOf('status.access', options.access ?? STATUS_DEFAULTS.access),
    allowChanges: booleanOf(
      'status.allowChanges',
      options.allowChanges ?? STATUS_DEFAULTS.allowChanges,
    ),
    allowedHosts: (hosts as string[]).map((host) => host.toLowerCase()),
    overloadedAt: numberIn(
      'status.overloadedAt',
      options.overloadedAt ?? STATUS_DEFAULTS.overloadedAt,
      Number.MIN_VALUE,
      1,
    ),
    onEvent: functionOf('status.onEvent', options.onEvent ?? STATUS_DEFAULTS.onEvent),
    registry: having('status.registry', options.registry ?? processRegistry(), ['sources']),
    timers: having('status.timers', options.timers ?? STATUS_DEFAULTS.timers, [
      'setTimeout',
      'clearTimeout',
    ]),
  };
}
