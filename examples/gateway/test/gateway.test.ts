import { closedPort, refuse, startTestServer } from '@elimit/testkit';
import { afterEach, expect, it } from '@jest/globals';
import request from 'supertest';
import { startExample } from '../../../packages/bench/src/http/example.js';
import { createGateway, type Upstreams } from '../src/gateway.js';
import { listen, orders, prices, users } from '../src/services.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function started(app: typeof users): Promise<string> {
  const { server, url } = await listen(app);
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return url;
}

async function gatewayTo(upstreams: Partial<Upstreams>): Promise<string> {
  const gateway = createGateway({
    users: [await started(users)],
    orders: [await started(orders)],
    prices: [await started(prices)],
    ...upstreams,
  });
  ends.push(() => gateway.close());
  return started(gateway.app);
}

const BASKET = { name: 'user 7', items: ['tea', 'cup'], total: 500 };

it('starts by one command, and serves', async () => {
  const { url, stop } = await startExample(import.meta.url);
  ends.push(stop);
  expect((await request(url).get('/users/7/basket')).body).toEqual(BASKET);
}, 60_000);

it('moves on from a node that is down and from one that refuses, also with a POST', async () => {
  const full = await startTestServer(refuse());
  ends.push(() => full.stop());
  const url = await gatewayTo({ orders: [await closedPort(), full.url, await started(orders)] });
  for (let i = 0; i < 4; i++) {
    expect((await request(url).get('/users/7/basket')).body).toEqual(BASKET);
  }
  const made = await request(url).post('/orders').send({ of: 'tea' });
  expect([made.status, made.body]).toEqual([201, { order: { of: 'tea' } }]);
});

it('serves without prices when they are down, and answers 502 without orders', async () => {
  const withoutPrices = await gatewayTo({ prices: [await closedPort()] });
  const page = await request(withoutPrices).get('/users/7/basket');
  expect(page.body).toEqual({ ...BASKET, total: null });
  const withoutOrders = await gatewayTo({ orders: [await closedPort()] });
  const error = await request(withoutOrders).get('/users/7/basket');
  expect([error.status, error.body]).toEqual([502, { code: 'ECONNREFUSED' }]);
});

it('passes a caller’s deadline on, answers 504 or refuses when it is too short, and blames nobody', async () => {
  const url = await gatewayTo({});
  const { status } = await request(url).get('/users/7/basket').set('x-request-timeout-ms', '8');
  expect([503, 504]).toContain(status);
  const answer = await request(url).get('/endpoints');
  const services = answer.body as { nodes: { failures: number; state: string }[] }[];
  expect(services.flatMap(({ nodes }) => nodes.map(({ failures }) => failures))).toEqual([0, 0, 0]);
});
