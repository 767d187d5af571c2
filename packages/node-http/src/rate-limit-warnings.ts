import type { IncomingMessage } from 'node:http';
import { type OnEvent, tell } from '@elimit/core';

/** Whose forwarding headers a framework believes: everybody's, nobody's, or those of proxies it was told of. */
export type ProxyTrust = 'all' | 'none' | 'some';

/** How a framework calls its setting for proxies, in words that fit into a sentence. */
export interface ProxySetting {
  /** What is set where everybody is believed. */
  readonly all: string;
  /** What to do about that. */
  readonly cure: string;
  /** What is set where nobody is. */
  readonly none: string;
}

const EXPRESS_PROXIES: ProxySetting = {
  all: "'trust proxy' is true",
  cure: 'name your proxies, or their number',
  none: "'trust proxy' is off",
};

/** What is asked of a framework about a request. */
interface Proxies {
  trustOf?(req: IncomingMessage): ProxyTrust;
  proxySettingOf?(req: IncomingMessage): ProxySetting | undefined;
}

/** Limits made while a request was waiting for them already, before one is called made per request. */
const MADE_LATE = 3;
const madeLate = new Map<string, number>();
/** Requests after which set-ups are taken for what they are: what was to be seen has been seen. */
const LOOKS = 10_000;

/** Tells, once each, of set-ups of `rateLimit` that do not limit as they seem to. */
export class RateWarnings {
  readonly #name: string;
  readonly #onEvent: OnEvent | undefined;
  readonly #proxies: Proxies;
  readonly #told = new Set<string>();
  #looks = 0;

  constructor(name: string, onEvent: OnEvent | undefined, proxies: Proxies) {
    this.#name = name;
    this.#onEvent = onEvent;
    this.#proxies = proxies;
  }

  /** False once there is nothing more to be looked for. */
  get isWatching(): boolean {
    return this.#looks < LOOKS;
  }

  /** Looks at the address a request is counted by, and at where it came from. */
  look(address: string | undefined, req: IncomingMessage): void {
    this.#looks += 1;
    if (address === undefined || address === '') {
      this.#tell(
        'WARN_RATE_NO_ADDRESS',
        'a request has no address (its socket has closed, or is no TCP socket): all of these share one key; give a keyGenerator',
      );
    }
    const { 'x-forwarded-for': forwardedFor, forwarded } = req.headers;
    if (forwardedFor === undefined && forwarded === undefined) return;
    const trust = this.#proxies.trustOf?.(req) ?? 'none';
    if (trust === 'some') return;
    const { all, cure, none } = this.#proxies.proxySettingOf?.(req) ?? EXPRESS_PROXIES;
    if (trust === 'all') {
      this.#tell(
        'WARN_TRUST_PROXY',
        `${all}, so a client chooses the address it is counted by: ${cure}`,
      );
    } else {
      this.#tell(
        'WARN_FORWARDED_IGNORED',
        `requests carry X-Forwarded-For or Forwarded, and ${none}: behind a proxy all clients share its address`,
      );
    }
  }

  twice(): void {
    this.#tell(
      'WARN_RATE_TWICE',
      'one rate limit stands twice in the way of a request; it is counted once',
    );
  }

  /** Made when its first request was there already: once may be lazy, again and again is a mistake. */
  madeLate(): void {
    const times = (madeLate.get(this.#name) ?? 0) + 1;
    madeLate.set(this.#name, times);
    if (times !== MADE_LATE) return;
    this.#tell(
      'WARN_RATE_PER_REQUEST',
      'rateLimit(…) is made anew for each request, so it limits nothing: make it once, outside of the handler',
    );
  }

  #tell(code: string, text: string): void {
    if (this.#told.has(code)) return;
    this.#told.add(code);
    const message = `rate limit ${this.#name}: ${text}`;
    if (this.#onEvent === undefined) process.emitWarning(message, { type: 'ElimitWarning', code });
    else tell(this.#onEvent, { type: 'warning', code, name: this.#name, message });
  }
}
