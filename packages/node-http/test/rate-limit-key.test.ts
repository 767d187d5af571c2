import { ipKey, RequestRateLimit } from '@elimit/node-http';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';

it.each([
  ['an IPv4 address', '1.2.3.4', '1.2.3.4'],
  ['one mapped into IPv6', '::ffff:1.2.3.4', '1.2.3.4'],
  ['one mapped, in hexadecimal', '::FFFF:102:304', '1.2.3.4'],
  ['one mapped, written out', '0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
  ['one with a port', '1.2.3.4:5678', '1.2.3.4'],
  ['an IPv6 address', '2001:db8:1:2:3:4:5:6', '2001:db8:1:0:0:0:0:0/56'],
  ['one of the same /56', '2001:0DB8:0001:00ff::1', '2001:db8:1:0:0:0:0:0/56'],
  ['one of the next /56', '2001:db8:1:100::1', '2001:db8:1:100:0:0:0:0/56'],
  ['one with a port', '[2001:db8:1:2::3]:443', '2001:db8:1:0:0:0:0:0/56'],
  ['one with a zone', 'fe80::1%eth0', 'fe80:0:0:0:0:0:0:0/56'],
  ['the loopback', '::1', '0:0:0:0:0:0:0:0/56'],
  ['all zeros', '::', '0:0:0:0:0:0:0:0/56'],
  ['what is no address', 'unix:/run/app.sock', 'unix:/run/app.sock'],
  ['an empty text', '', ''],
])('keys %s by what it stands for', (_what, address, key) => {
  expect(ipKey(address)).toBe(key);
});

it('takes another subnet, or none', () => {
  expect(ipKey('2001:db8:1:2:3:4:5:6', 64)).toBe('2001:db8:1:2:0:0:0:0/64');
  expect(ipKey('2001:db8:1:2:3:4:5:6', false)).toBe('2001:db8:1:2:3:4:5:6');
  expect(ipKey('2001:db8:1:2:3:4:5:6', 33)).toBe('2001:db8:0:0:0:0:0:0/33');
});

it('makes one key of a thousand addresses of a customer', () => {
  const keys = Array.from({ length: 1000 }, (_, i) => ipKey(`2001:db8:1:2::${i.toString(16)}`));
  expect(new Set(keys).size).toBe(1);
});

it('neither throws nor takes long, whatever it is given', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.ipV6(),
        fc.ipV4(),
        fc.string(),
        fc.string({ unit: fc.constantFrom(':', '[', ']', '.', '%', 'f', '1') }),
      ),
      (address) => {
        const key = ipKey(address);
        expect(typeof key).toBe('string');
        expect(key).not.toContain('NaN');
        expect(ipKey(address)).toBe(key);
      },
    ),
    { numRuns: 1000 },
  );
  expect(ipKey('1:'.repeat(50_000))).toHaveLength(100_000);
});

it('has requests without an address share a key', () => {
  const limited = new RequestRateLimit(
    { limit: 1, registry: false },
    { addressOf: () => undefined },
  );
  expect(limited.keyOf(undefined)).toBe('unknown');
});
