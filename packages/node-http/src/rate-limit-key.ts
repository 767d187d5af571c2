import { isIPv6 } from 'node:net';

/** Longer than any address with a zone and a port. */
const LONGEST_ADDRESS = 100;

/**
 * The key of a client's address: an IPv4 address as it is; an IPv6 address's subnet, since one
 * customer has a whole one; an IPv4 address mapped into IPv6 as IPv4. A zone (`%eth0`) and a port are
 * left out. What is no address is its own key.
 *
 * @param subnet - bits of the IPv6 subnet, 1 to 128; `false` for whole addresses
 */
export function ipKey(address: string, subnet: number | false = 56): string {
  if (!address.includes(':')) return address;
  if (address.length > LONGEST_ADDRESS) return address;
  const bare = withoutPort(address);
  const host = bare.includes('%') ? bare.slice(0, bare.indexOf('%')) : bare;
  if (!isIPv6(host)) return bare;
  const groups = groupsOf(host);
  const mapped = mappedOf(groups);
  if (mapped !== undefined) return mapped;
  const bits = subnet === false ? 128 : subnet;
  const kept = groups.map((group, i) => group & mask(bits - i * 16));
  const text = kept.map((group) => group.toString(16)).join(':');
  return bits === 128 ? text : `${text}/${bits}`;
}

/** `1.2.3.4:5678` and `[::1]:5678`. */
function withoutPort(address: string): string {
  return /^([\d.]+):\d+$/.exec(address)?.[1] ?? /^\[([^\]]*)\]/.exec(address)?.[1] ?? address;
}

/** Eight groups of 16 bits of a valid address. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const before = parse(head);
  if (tail === undefined) return before;
  const after = parse(tail);
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function parse(half: string): number[] {
  if (half === '') return [];
  return half.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/** The IPv4 address of `::ffff:1.2.3.4`, in whatever way it is written. */
function mappedOf(groups: readonly number[]): string | undefined {
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return undefined;
  return groups
    .slice(6)
    .map((group) => `${group >> 8}.${group & 255}`)
    .join('.');
}

/** The first `bits` of 16. */
function mask(bits: number): number {
  return bits >= 16 ? 0xffff : bits <= 0 ? 0 : (0xffff << (16 - bits)) & 0xffff;
}
