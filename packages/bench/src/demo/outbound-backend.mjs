// One backend of the outbound demo: answers after about 5 ms. `node outbound-backend.mjs PORT`; tells its port when it listens.
import http from 'node:http';

const server = http.createServer((request, response) => {
  if (request.url === '/healthz') response.end('up');
  else setTimeout(() => response.end('ok'), 3 + Math.random() * 4);
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.send?.(server.address().port);
});
process.on('disconnect', () => process.exit());
