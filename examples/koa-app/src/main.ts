import type { AddressInfo } from 'node:net';
import { createApp } from './app.js';

const server = createApp().listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  console.log(`http://127.0.0.1:${port}
  /search?q=x      waits 20 ms: limited by its deadline of 300 ms
  /thumbnail/1     burns 5 ms of processor: limited by what it learns
  /report          waits 2 s: two at once
  /mail            three at once, then one each 2 s, for each client
  /limits          what the limits know
try: for i in 1 2 3; do curl -si 127.0.0.1:${port}/report & done; wait`);
});
