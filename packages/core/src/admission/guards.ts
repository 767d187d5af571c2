import { type MaxConcurrency, parseMaxConcurrency } from '../limiter/max-concurrency.js';
import { integerIn, knownKeys, located, objectOf, textOf } from '../options.js';
import {
  type AcquireOptions,
  CallGuard,
  GUARD_DEFAULTS,
  type Guard,
  type GuardOptions,
} from './guard.js';
import type { LoopTurn } from './loop-rule.js';
import type { Entry } from './permit.js';

/** The name shared by all methods that were not declared, once there are too many. */
export const OTHER = 'other';

/** What {@link createGuards} makes its guards of; what is not named here holds for each of them. */
export interface GuardsOptions extends Omit<GuardOptions, 'limit' | 'name'> {
  /** The cap over all methods together. A refusal by it has the reason `server` and teaches no method. @default 'unlimited' */
  readonly serverMaxConcurrency?: MaxConcurrency | undefined;
  /** The limit of each method that has none of its own: one engine per method, not one for all. @default 'auto' */
  readonly methodMaxConcurrency?: MaxConcurrency | undefined;
  /** Limits by method name. `'unlimited'` opts a method out of the default; the server-level cap still counts it. */
  readonly methods?: Readonly<Record<string, MaxConcurrency>> | undefined;
  /** Guards kept at most; methods that were not declared share the guard `other` beyond it. Declared ones always have their own. 1 to 1 000 000. @default 200 */
  readonly maxNames?: number | undefined;
  /** The name of the server-level guard. @default 'server' */
  readonly serverName?: string | undefined;
}

export const GUARDS_DEFAULTS = {
  ...GUARD_DEFAULTS,
  serverMaxConcurrency: 'unlimited',
  methodMaxConcurrency: 'auto',
  methods: {},
  maxNames: 200,
  serverName: 'server',
} as const;

/** One guard for a server and one per method. */
export interface Guards {
  /** Counts all calls of all methods; its limit is the server-level cap. */
  readonly server: Guard;
  /** Admits a call of a method or refuses it: the server-level cap is asked first. Never throws, never waits. */
  tryAcquire(name: string, options?: AcquireOptions): Entry;
  /** The guard of a method, made at the first call for an undeclared one. The server-level cap stands before it too. */
  guardOf(name: string): Guard;
  /** The most calls of the method that may be in flight right now. */
  maxConcurrencyOf(name: string): number;
  /**
   * Sets a method's limit, under load if need be; the method is declared from then on.
   *
   * @throws TypeError or RangeError; then nothing has changed
   */
  setMaxConcurrency(name: string, value: MaxConcurrency): void;
  /** The methods that have a guard of their own, `other` included once it is in use. */
  names(): string[];
  /** Tells all guards of one turn of the event loop. */
  observeLoop(turn: LoopTurn): void;
}

/**
 * Makes guards for a server: a cap over all, a default for each method, and a limit of its own for
 * every method that is named.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function createGuards(options: GuardsOptions = {}): Guards {
  return new MethodGuards(options);
}

class MethodGuards implements Guards {
  readonly server: CallGuard;
  readonly #common: Omit<GuardOptions, 'limit' | 'name'>;
  readonly #methodMaxConcurrency: MaxConcurrency;
  readonly #maxNames: number;

  readonly #byName = new Map<string, CallGuard>();
  #other: CallGuard | undefined;

  constructor(options: GuardsOptions) {
    const { limit: _, name: __, ...known } = GUARDS_DEFAULTS;
    knownKeys('guards', options, known);
    const {
      serverMaxConcurrency = GUARDS_DEFAULTS.serverMaxConcurrency,
      methodMaxConcurrency = GUARDS_DEFAULTS.methodMaxConcurrency,
      methods = GUARDS_DEFAULTS.methods,
      maxNames = GUARDS_DEFAULTS.maxNames,
      serverName = GUARDS_DEFAULTS.serverName,
      ...common
    } = options;
    this.#common = common;
    this.#methodMaxConcurrency = methodMaxConcurrency;
    this.#maxNames = integerIn('guards.maxNames', maxNames, 1, 1_000_000);
    // checked now, not at the first call of some method
    checkLimit('guards.serverMaxConcurrency', serverMaxConcurrency);
    checkLimit('guards.methodMaxConcurrency', methodMaxConcurrency);
    objectOf('guards.methods', methods);
    if (methods instanceof Map) throw new TypeError('guards.methods must be an object, got a Map');
    const declared = Object.entries<MaxConcurrency>(methods);
    for (const [name, value] of declared) {
      checkLimit(`guards.methods.${textOf('guards method name', name)}`, value);
    }
    this.server = new CallGuard(
      { ...common, name: textOf('guards.serverName', serverName), limit: serverMaxConcurrency },
      undefined,
    );
    for (const [name, value] of declared) this.#make(name, value);
  }

  tryAcquire(name: string, options?: AcquireOptions): Entry {
    return this.#guardOf(name).tryAcquire(options);
  }

  guardOf(name: string): Guard {
    return this.#guardOf(name);
  }

  maxConcurrencyOf(name: string): number {
    return this.#guardOf(name).maxConcurrency;
  }

  setMaxConcurrency(name: string, value: MaxConcurrency): void {
    const guard = this.#byName.get(textOf('guards method name', name));
    located(`the limit of ${name}`, () => {
      if (guard !== undefined) guard.configure({ limit: value });
      else this.#make(name, value);
    });
  }

  names(): string[] {
    const names = [...this.#byName.keys()];
    if (this.#other !== undefined && !this.#byName.has(OTHER)) names.push(OTHER);
    return names;
  }

  observeLoop(turn: LoopTurn): void {
    this.server.observeLoop(turn);
    for (const guard of this.#byName.values()) guard.observeLoop(turn);
    if (this.#other !== undefined && !this.#byName.has(OTHER)) this.#other.observeLoop(turn);
  }

  #guardOf(name: string): CallGuard {
    const guard = this.#byName.get(name);
    if (guard !== undefined) return guard;
    // a call is never refused for its name: one without shares too
    if (this.#byName.size < this.#maxNames && name !== '')
      return this.#make(name, this.#methodMaxConcurrency);
    this.#other ??= this.#byName.get(OTHER) ?? this.#build(OTHER, this.#methodMaxConcurrency);
    return this.#other;
  }

  #make(name: string, limit: MaxConcurrency): CallGuard {
    const guard = this.#build(name, limit);
    this.#byName.set(name, guard);
    return guard;
  }

  #build(name: string, limit: MaxConcurrency): CallGuard {
    return new CallGuard({ ...this.#common, name, limit }, this.server);
  }
}

/** Which of many limits is wrong stands in front of what is wrong with it. */
function checkLimit(name: string, value: MaxConcurrency): void {
  located(name, () => parseMaxConcurrency(value));
}
