import {
  type ChannelOptions,
  channelOf,
  createChannel,
  dnsNaming,
  fileNaming,
  listNaming,
} from '@elimit/client';
import { createGuard, processRegistry } from '@elimit/core';
import { expect, it } from '@jest/globals';

const nodes = ['http://127.0.0.1:1'];
const listed = (extra: object): ChannelOptions => ({ nodes, ...extra });

it.each<{ it: string; options: unknown; says: RegExp }>([
  { it: 'nothing', options: undefined, says: /channel must be an object, got undefined/ },
  {
    it: 'an unknown option',
    options: listed({ node: 1 }),
    says: /channel.node is not an option; known: name, nodes/,
  },
  {
    it: 'no nodes at all',
    options: {},
    says: /channel needs one of nodes, naming, or unlisted: true; got none/,
  },
  {
    it: 'nodes and naming',
    options: listed({ naming: listNaming(nodes) }),
    says: /got more than one/,
  },
  {
    it: 'an empty list',
    options: { nodes: [] },
    says: /nodes must name at least one node, got none/,
  },
  {
    it: 'a list that is a string',
    options: { nodes: 'http://a' },
    says: /nodes must be an array of origins, got "http:\/\/a"/,
  },
  {
    it: 'a node that is no URL',
    options: { nodes: ['localhost:80 80'] },
    says: /nodes\[0\] must be an origin like/,
  },
  {
    it: 'a host and port without scheme',
    options: { nodes: ['localhost:8080'] },
    says: /nodes\[0\] must be an origin like/,
  },
  {
    it: 'a scheme that is not HTTP',
    options: { nodes: ['ftp://a'] },
    says: /nodes\[0\] must be an origin like .* got "ftp:\/\/a"/,
  },
  {
    it: 'a path in a node',
    options: { nodes: ['http://a/x'] },
    says: /without path, query or user: "http:\/\/a"/,
  },
  {
    it: 'a user in a node',
    options: { nodes: ['http://u:p@a'] },
    says: /without path, query or user: "http:\/\/a"/,
  },
  {
    it: 'a number as node',
    options: { nodes: [8080] },
    says: /nodes\[0\] must be an object, got 8080/,
  },
  {
    it: 'a node without url',
    options: { nodes: [{ weight: 1 }] },
    says: /nodes\[0\].url must be an origin like .* got undefined/,
  },
  {
    it: 'an unknown key in a node',
    options: { nodes: [{ url: 'http://a', wieght: 2 }] },
    says: /nodes\[0\].wieght is not an option; known: url, weight, host/,
  },
  {
    it: 'a weight of 0',
    options: { nodes: [{ url: 'http://a', weight: 0 }] },
    says: /nodes\[0\].weight must be a whole number from 1 to 10000, got 0/,
  },
  {
    it: 'a node twice',
    options: { nodes: ['http://a:80', 'http://a'] },
    says: /nodes\[1\] names http:\/\/a a second time; use weight/,
  },
  {
    it: 'an unknown balancer',
    options: listed({ balancer: 'rr' }),
    says: /channel.balancer must be one of roundRobin, random, weighted, leastLoaded, got "rr"/,
  },
  {
    it: 'a balancer without pick',
    options: listed({ balancer: {} }),
    says: /channel.balancer.pick must be a function, got undefined/,
  },
  {
    it: 'a timeout of NaN',
    options: listed({ timeoutMs: Number.NaN }),
    says: /channel.timeoutMs must be a whole number from 1 to 86400000, got NaN/,
  },
  {
    it: 'a timeout as text',
    options: listed({ timeoutMs: '500' }),
    says: /channel.timeoutMs must be .* got "500"/,
  },
  {
    it: 'a timeout equal to the connect timeout',
    options: listed({ timeoutMs: 200 }),
    says: /channel.timeoutMs \(200\) must be more than channel.connectTimeoutMs \(200\), or a host that is down could not be told from one that is slow/,
  },
  {
    it: 'a connect timeout above the timeout',
    options: listed({ connectTimeoutMs: 501 }),
    says: /channel.timeoutMs \(500\) must be more/,
  },
  {
    it: 'a try timeout within the connect timeout',
    options: listed({ tryTimeoutMs: 200 }),
    says: /channel.tryTimeoutMs \(more than connectTimeoutMs, at most timeoutMs\) must be a whole number from 201 to 500, got 200/,
  },
  {
    it: 'a try timeout above the timeout',
    options: listed({ tryTimeoutMs: 501 }),
    says: /from 201 to 500, got 501/,
  },
  {
    it: 'a backup after the end',
    options: listed({ backupRequestMs: 500 }),
    says: /channel.backupRequestMs must be a whole number from 1 to 499, got 500/,
  },
  {
    it: 'a header name with a space',
    options: listed({ deliverTimeout: 'x y' }),
    says: /channel.deliverTimeout must be a header name/,
  },
  {
    it: 'minus one retry',
    options: listed({ maxRetries: -1 }),
    says: /channel.maxRetries must be a whole number from 0 to 100, got -1/,
  },
  {
    it: 'a retry status that is no error',
    options: listed({ retryStatuses: [429] }),
    says: /channel.retryStatuses\[0\] must be a whole number from 500 to 599, got 429/,
  },
  {
    it: 'retry statuses that are no list',
    options: listed({ retryStatuses: 503 }),
    says: /channel.retryStatuses must be an array, got 503/,
  },
  {
    it: 'a budget in percent',
    options: listed({ retryBudget: { ratio: 10 } }),
    says: /channel.retryBudget.ratio must be a number from 0 to 1, got 10/,
  },
  {
    it: 'an unknown key in a budget',
    options: listed({ backupBudget: { percent: 1 } }),
    says: /channel.backupBudget.percent is not an option; known: ratio, floor, windowMs/,
  },
  {
    it: 'no connect timeout to count',
    options: listed({ connectTimeoutsAsUnreachable: 0 }),
    says: /channel.connectTimeoutsAsUnreachable must be a whole number from 1 to 1000, got 0/,
  },
  {
    it: 'errorCost as text',
    options: listed({ errorCost: 'on' }),
    says: /channel.errorCost must be true or false, got "on"/,
  },
  {
    it: 'a bad number of the breaker',
    options: listed({ breaker: { minCalls: 0 } }),
    says: /^channel.breaker.minCalls must be .* got 0/,
  },
  {
    it: 'an unknown option of the breaker',
    options: listed({ breaker: { foo: 1 } }),
    says: /^channel.breaker.foo is not an option; known: shortWindowSize/,
  },
  {
    it: 'numbers of the breaker that cross',
    options: listed({ breaker: { minIsolationMs: 5, maxIsolationMs: 4 } }),
    says: /^channel.breaker.m..IsolationMs .*channel.breaker.m..IsolationMs/,
  },
  {
    it: 'a breaker that is neither strict nor not',
    options: listed({ breaker: { strict: 1 } }),
    says: /^channel.breaker.strict must be true or false, got 1/,
  },
  {
    it: 'a breaker that is no object',
    options: listed({ breaker: 5 }),
    says: /^channel.breaker must be an object, got 5/,
  },
  {
    it: 'a strict option in the default grade',
    options: listed({ breaker: { minErrorCostMs: 1 } }),
    says: /^channel.breaker.minErrorCostMs belongs to the strict grade/,
  },
  {
    it: 'a cap in percent',
    options: listed({ maxIsolatedRatio: 50 }),
    says: /channel.maxIsolatedRatio must be a number from 0 to 1, got 50/,
  },
  {
    it: 'a check every millisecond',
    options: listed({ healthCheck: { intervalMs: 1 } }),
    says: /channel.healthCheck.intervalMs must be a whole number from 10 to 3600000, got 1/,
  },
  {
    it: 'a health path that is a URL',
    options: listed({ healthCheck: { path: 'http://a/h' } }),
    says: /channel.healthCheck.path must be a path like "\/healthz"/,
  },
  {
    it: 'a probe that is no function',
    options: listed({ healthCheck: { probe: true } }),
    says: /channel.healthCheck.probe must be a function, got true/,
  },
  {
    it: 'recovery without hold',
    options: listed({ minWorkingInstances: 2 }),
    says: /minWorkingInstances and channel.holdMs go together/,
  },
  {
    it: 'hold without recovery',
    options: listed({ holdMs: 2 }),
    says: /minWorkingInstances and channel.holdMs go together/,
  },
  {
    it: 'recovery with nobody',
    options: listed({ minWorkingInstances: 0, holdMs: 1 }),
    says: /^channel.minWorkingInstances must be a whole number from 1 to 1000000, got 0/,
  },
  {
    it: 'a hold of nothing',
    options: listed({ minWorkingInstances: 2, holdMs: 0 }),
    says: /^channel.holdMs must be a number from 1 to 86400000, got 0/,
  },
  {
    it: 'a clock that tells no time',
    options: listed({ clock: { now: () => 0 } }),
    says: /channel.clock.nowUs must be a function, got undefined/,
  },
  {
    it: 'timers that cannot be cleared',
    options: listed({ timers: { setTimeout } }),
    says: /channel.timers.clearTimeout must be a function, got undefined/,
  },
  {
    it: 'a random number in place of chance',
    options: listed({ random: 0.5 }),
    says: /channel.random must be a function, got 0.5/,
  },
  {
    it: 'a registry that is none',
    options: listed({ registry: { add() {} } }),
    says: /channel.registry.remove must be a function, got undefined/,
  },
  {
    it: 'a registry of true',
    options: listed({ registry: true }),
    says: /channel.registry must be an object, got true/,
  },
  {
    it: 'a group that is a number',
    options: listed({ connectionGroup: 7 }),
    says: /channel.connectionGroup must be a string, got 7/,
  },
  {
    it: 'naming without watch',
    options: { naming: {} },
    says: /channel.naming.watch must be a function, got undefined/,
  },
  {
    it: 'null as naming',
    options: { naming: null },
    says: /channel.naming must be an object, got null/,
  },
  {
    it: 'classify that is no function',
    options: listed({ classify: 1 }),
    says: /channel.classify must be a function, got 1/,
  },
  {
    it: 'an empty name',
    options: listed({ name: '' }),
    says: /channel.name must be a non-empty string, got ""/,
  },
])('refuses $it', ({ options, says }) => {
  expect(() => createChannel(options as ChannelOptions)).toThrow(says);
});

it.each<{ it: string; make: () => unknown; says: RegExp }>([
  {
    it: 'a file that is not there',
    make: () => createChannel({ naming: fileNaming('/nowhere/nodes') }),
    says: /ENOENT/,
  },
  {
    it: 'a file without a name',
    make: () => fileNaming(''),
    says: /fileNaming path must be a non-empty string/,
  },
  {
    it: 'an unknown option of a file',
    make: () => fileNaming('/x', { interval: 1 } as never),
    says: /fileNaming.interval is not an option/,
  },
  {
    it: 'an address as name',
    make: () => dnsNaming('http://10.0.0.1:80'),
    says: /must have a host name, got 10.0.0.1; use nodes/,
  },
  {
    it: 'an IPv6 address as name',
    make: () => dnsNaming('http://[::1]:80'),
    says: /must have a host name, got \[::1\]; use nodes/,
  },
  {
    it: 'a name without scheme',
    make: () => dnsNaming('a.internal'),
    says: /dnsNaming origin must be an origin like/,
  },
  {
    it: 'a resolver that is no function',
    make: () => dnsNaming('http://a', { resolve: 1 as never }),
    says: /dnsNaming.resolve must be a function, got 1/,
  },
])('refuses $it', ({ make, says }) => {
  expect(make).toThrow(says);
});

it('takes undefined as absent, and never writes to what it was given', () => {
  const options = Object.freeze({
    nodes: Object.freeze([Object.freeze({ url: 'http://127.0.0.1:1' })]),
    timeoutMs: undefined,
    balancer: undefined,
    connectionGroup: '  spaced  ',
  });
  const channel = createChannel(options);
  expect(channel.endpoints()[0]).toMatchObject({
    name: 'http://127.0.0.1:1 group=spaced',
    connectionGroup: 'spaced',
    state: 'closed',
  });
  channel.close();
});

it.each([
  { call: null, says: /call must be an object, got null/ },
  { call: { timeoutMS: 5 }, says: /call.timeoutMS is not an option; known: method, resend/ },
  { call: { method: 5 }, says: /call.method must be a non-empty string, got 5/ },
  { call: { resend: 'no' }, says: /call.resend must be true or false, got "no"/ },
  { call: { replayable: 0 }, says: /call.replayable must be true or false, got 0/ },
  { call: { signal: 5 }, says: /call.signal must be an object, got 5/ },
  { call: { signal: {} }, says: /call.signal.addEventListener must be a function/ },
  { call: { errorCost: 1 }, says: /call.errorCost must be true or false, got 1/ },
  { call: { breaker: 'false' }, says: /call.breaker must be true or false, got "false"/ },
  { call: { classify: 5 }, says: /call.classify must be a function, got 5/ },
  { call: { discard: {} }, says: /call.discard must be a function, got an object/ },
  { call: { origin: 5 }, says: /call.origin must be an origin like .* got 5/ },
  { call: { timeoutMs: 0 }, says: /call.timeoutMs must be a number from 1 to 86400000, got 0/ },
  { call: { timeoutMs: Number.NaN }, says: /call.timeoutMs must be .* got NaN/ },
  { call: { carriedTimeoutMs: Number.NaN }, says: /call.carriedTimeoutMs must be .* got NaN/ },
  { call: { maxRetries: -1 }, says: /call.maxRetries must be .* got -1/ },
  { call: { origin: 'nowhere' }, says: /call.origin must be an origin/ },
])('rejects a call with $call', async ({ call, says }) => {
  const channel = createChannel({ nodes });
  await expect(channel.execute(() => 1, call as never)).rejects.toThrow(says);
  await expect(channel.execute(1 as never)).rejects.toThrow(/tryFn must be a function, got 1/);
  expect(channel.endpoints()[0]?.calls).toBe(0);
  channel.close();
});

it('takes fractions of a millisecond, and undefined, for a call', async () => {
  const channel = createChannel({ nodes });
  const call = {
    timeoutMs: 1500.5,
    carriedTimeoutMs: 1000.25,
    signal: undefined,
    origin: undefined,
  };
  expect(await channel.execute(() => 'value', call)).toBe('value');
  channel.close();
});

it('registers its endpoints nowhere with registry: false', () => {
  const before = processRegistry().sources();
  const channel = createChannel({ nodes, connectionGroup: 'nowhere', registry: false });
  expect(processRegistry().sources()).toEqual(before);
  channel.close();
});

it.each<{ target: unknown; got: string }>([
  { target: 'http://a', got: '"http://a"' },
  { target: null, got: 'null' },
  { target: 5, got: '5' },
  { target: ['http://a'], got: 'an array of 1' },
  { target: () => {}, got: 'function target' },
  { target: new URL('http://a'), got: 'an object' },
  { target: createGuard({ limit: 1, registry: false }), got: 'an object' },
])('an adapter refuses $got in place of a channel', ({ target, got }) => {
  expect(() => channelOf(target as never)).toThrow(
    new TypeError(`target must be a channel, or options to make one, got ${got}`),
  );
});
