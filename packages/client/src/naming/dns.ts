import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { functionOf, integerIn, knownKeys, show, type TimerHandle } from '@elimit/core';
import { inItsTime, inTime } from './in-time.js';
import { type Naming, originOf } from './naming.js';

/** How `dnsNaming` asks. */
export interface DnsNamingOptions {
  /** How often the name is resolved again, in milliseconds, 10 to 3 600 000. @default 5000 */
  readonly intervalMs?: number | undefined;
  /**
   * Gives the IP addresses of a host name, in an array; one with something else in it has failed, and so has one that
   * takes longer than 10 s: it is asked again. @default the system's own look-up, `/etc/hosts` included, which is waited for
   */
  readonly resolve?: ((hostname: string) => Promise<readonly string[]>) | undefined;
}

const DNS_NAMING_DEFAULTS = { intervalMs: 5000, resolve: lookUp } as const;

async function lookUp(hostname: string): Promise<string[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
}

/**
 * One node for each address of a host name, resolved again every `intervalMs`. `Host` and the TLS server
 * name stay the name's own. Until the first answer calls wait, inside their own time; when a later look-up
 * fails, takes over 10 s or finds nothing, the last list stands.
 *
 * @param origin - scheme, host name and port: `http://search.internal:8080`
 */
export function dnsNaming(origin: string | URL, options: DnsNamingOptions = {}): Naming {
  const url = originOf('dnsNaming origin', origin);
  knownKeys('dnsNaming', options, DNS_NAMING_DEFAULTS);
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    throw new RangeError(`dnsNaming origin must have a host name, got ${url.hostname}; use nodes`);
  }
  const intervalMs = integerIn(
    'dnsNaming.intervalMs',
    options.intervalMs ?? DNS_NAMING_DEFAULTS.intervalMs,
    10,
    3_600_000,
  );
  const resolve = functionOf('dnsNaming.resolve', options.resolve ?? DNS_NAMING_DEFAULTS.resolve);
  const isOwn = options.resolve !== undefined;
  return {
    watch(listener, timers) {
      let stopped = false;
      let timer: TimerHandle;
      let seen = '';

      function failed(error: unknown): void {
        if (!stopped) listener.failed(error);
      }

      function find(): Promise<readonly string[]> {
        const of = `the look-up of ${url.hostname}`;
        const ask = async () => resolve(url.hostname);
        return isOwn ? inTime(of, timers, ask) : inItsTime(of, timers, ask, failed);
      }

      async function look(): Promise<void> {
        try {
          const found = await find();
          checkAddresses(found);
          // sorted: servers of names shuffle their answers
          const addresses = [...new Set(found)].toSorted();
          if (addresses.length === 0) throw new Error(`${url.hostname} has no address`);
          if (!stopped && addresses.join() !== seen) {
            listener.update(addresses.map((address) => nodeAt(url, address)));
            seen = addresses.join();
          }
        } catch (error) {
          failed(error);
        }
        if (!stopped) timer = timers.setTimeout(() => void look(), intervalMs);
      }

      void look();
      return () => {
        stopped = true;
        timers.clearTimeout(timer);
      };
    },
  };
}

/** Throws unless they can all stand in a URL: anything else would silently name another host, or the same one again. */
function checkAddresses(found: unknown): void {
  if (!Array.isArray(found)) {
    throw new TypeError(`dnsNaming.resolve must give an array of addresses, got ${show(found)}`);
  }
  for (const address of found as readonly unknown[]) {
    if (typeof address !== 'string' || isIP(address) === 0 || address.includes('%')) {
      throw new TypeError(
        `dnsNaming.resolve must give IP addresses without a zone, got ${show(address)}`,
      );
    }
  }
}

function nodeAt(url: URL, address: string): { url: string; host: string } {
  const at = new URL(url);
  at.hostname = isIPv6(address) ? `[${address}]` : address;
  return { url: at.origin, host: url.host };
}
