import { createRateLimiter, type SharedRateLimiter } from '@elimit/core';
import { type RedisClient, redisStore } from '@elimit/redis';
import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { describeRedis } from './support/describe-redis.js';

const SLOTS = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
];

let nodes: RedisServer[] = [];
beforeAll(async () => {
  nodes = await Promise.all(SLOTS.map(() => RedisServer.start('--cluster-enabled', 'yes')));
  for (const [i, node] of nodes.entries()) {
    const [from, to] = SLOTS[i] as [number, number];
    node.command('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`);
    node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
    for (const other of nodes) node.command('CLUSTER', 'MEET', '127.0.0.1', `${other.port}`);
  }
  const until = Date.now() + 30_000;
  while (
    !nodes.every((node) =>
      /cluster_state:ok.*cluster_known_nodes:3/s.test(node.command('CLUSTER', 'INFO')),
    )
  ) {
    if (Date.now() > until) throw new Error('the cluster did not form within 30 s');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}, 60_000);
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
});

/** How many keys were counted once by two limiters, of how many; and from where. */
async function exercise(client: RedisClient, name: string) {
  const make = (): SharedRateLimiter =>
    createRateLimiter({
      rate: 0.001,
      burst: 5,
      name,
      registry: false,
      storeTimeoutMs: 5000,
      store: redisStore(client),
    });
  const [one, two] = [make(), make()];
  const keys = [
    'plain',
    '{a}',
    '{a}b',
    'a}{b',
    'x'.repeat(5000),
    ...Array.from({ length: 50 }, (_, i) => `k${i}`),
  ];
  let right = 0;
  for (const key of keys) {
    const granted = [
      await one.tryTake(3, key),
      await two.tryTake(3, key),
      await two.tryTake(2, key),
    ];
    if (granted.join() === 'true,false,true') right += 1;
  }
  const { mode } = one.snapshot();
  await one.close();
  await two.close();
  return { right, of: keys.length, mode };
}

const ALL = { right: 55, of: 55, mode: 'store' };

describeRedis('on a cluster of three', () => {
  it('counts every key once with ioredis, and spreads them', async () => {
    const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    try {
      expect(await exercise(cluster, 'io')).toEqual(ALL);
    } finally {
      cluster.disconnect();
    }
    const sizes = nodes.map((node) => Number(node.command('DBSIZE')));
    expect(sizes.every((size) => size > 5)).toBe(true);
  });

  it('counts every key once with node-redis', async () => {
    const cluster = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) });
    cluster.on('error', () => undefined); // what matters comes out of the calls
    await cluster.connect();
    try {
      expect(await exercise(cluster, 'node')).toEqual(ALL);
    } finally {
      cluster.destroy();
    }
  });
});
