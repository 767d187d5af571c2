import type { IncomingMessage } from 'node:http';

/** Headers that carry the time a caller still has. Relative times: the clocks of two hosts need not agree. */
export const DEADLINE_HEADERS: readonly string[] = [
  'grpc-timeout',
  'x-envoy-expected-rq-timeout-ms',
  'x-request-timeout-ms',
];

/** gRPC's units, in milliseconds. */
const GRPC_UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

// eight digits are gRPC's own bound; twelve (31 years) stay exact in microseconds
const GRPC_TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLISECONDS = /^\d{1,12}$/;

/**
 * The time a request's caller still has, in milliseconds from its arrival: the smallest that its headers
 * give. 0 means that it has passed. `undefined` if there is none; what cannot be read counts as none.
 *
 * @param headerNames - in lower case. @default DEADLINE_HEADERS
 */
export function timeoutOf(
  req: Pick<IncomingMessage, 'headers'>,
  headerNames: readonly string[] = DEADLINE_HEADERS,
): number | undefined {
  let smallest: number | undefined;
  for (const name of headerNames) {
    const value = req.headers[name];
    if (value === undefined) continue;
    // a header that was sent twice arrives as one list
    for (const part of typeof value === 'string' ? value.split(',') : value) {
      const timeoutMs = parse(name, part.trim());
      if (timeoutMs !== undefined && !(smallest !== undefined && smallest <= timeoutMs)) {
        smallest = timeoutMs;
      }
    }
  }
  return smallest;
}

function parse(name: string, text: string): number | undefined {
  if (name !== 'grpc-timeout') return MILLISECONDS.test(text) ? Number(text) : undefined;
  const match = GRPC_TIMEOUT.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * (GRPC_UNIT_MS[match[2] as string] as number);
}
