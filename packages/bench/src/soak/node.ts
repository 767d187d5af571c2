// A backend of the soak: answers after a few milliseconds, now and then with a 500. `node.ts PORT`
import { once } from 'node:events';
import { createServer } from 'node:http';

let calls = 0;
const server = createServer((_req, res) => {
  calls++;
  setTimeout(() => {
    res.statusCode = calls % 50 === 0 ? 500 : 200;
    res.end('ok');
  }, 5);
});
server.listen(Number(process.argv[2]), '127.0.0.1');
await once(server, 'listening');
process.send?.({ up: true });
process.on('disconnect', () => process.exit());
