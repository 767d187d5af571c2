import { createGateway } from './gateway.js';
import { listen, orders, prices, users } from './services.js';

// two nodes each, in one process so that one command starts everything
const nodesOf = async (app: typeof users): Promise<string[]> => [
  (await listen(app)).url,
  (await listen(app)).url,
];
const { app } = createGateway({
  users: await nodesOf(users),
  orders: await nodesOf(orders),
  prices: await nodesOf(prices),
});
const { url } = await listen(app, Number(process.env.PORT ?? 3000));
console.log(`${url}
  /users/1/basket   asks three services
  /endpoints        what the gateway knows of their nodes
try: curl -s ${url}/users/1/basket; curl -s -H 'x-request-timeout-ms: 20' ${url}/users/1/basket`);
