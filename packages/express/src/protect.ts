import type { Server } from 'node:http';
import {
  giveExpressKeysEarly,
  type Protection,
  type ProtectOptions,
  protect as protectServer,
} from '@elimit/node-http';

/**
 * Limits how many requests an `http.Server` serves at once, in front of the Express app that listens on it: the
 * others are refused before anything is routed or parsed.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function protect(server: Server, options: ProtectOptions = {}): Protection {
  giveExpressKeysEarly();
  return protectServer(server, options);
}
