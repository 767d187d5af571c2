// Clients in a process of their own, as in life: their work must not be part of the server's loop.
// node slow-clients-child.mjs PORT KIND COUNT OTHERS PACE_MS  → prints how many of the others were served
import { request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [port, kind, count, others, paceMs] = process.argv.slice(2);

/** One slow client: it has one connection at a time, and comes back when it was cut off. */
async function slowClient() {
  for (;;) {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve)); // `once` would throw the reset
    if (kind === 'trickle') {
      socket.resume();
      socket.write('POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n');
    } else {
      socket.write(`GET /${kind} HTTP/1.1\r\nHost: test\r\n\r\n`);
    }
    const trickle = setInterval(() => kind === 'trickle' && socket.write('x'), 20);
    await closed;
    clearInterval(trickle);
    await sleep(50);
  }
}

function statusOf() {
  return new Promise((resolve) => {
    const req = request({ host: '127.0.0.1', port, agent: false }, (res) => {
      res.resume();
      res.on('end', () => resolve(res.statusCode));
    });
    req.on('error', () => resolve(0));
    req.end();
  });
}

for (let i = 0; i < Number(count); i++) void slowClient();
await sleep(20);
const answers = [];
for (let i = 0; i < Number(others); i++) {
  answers.push(statusOf());
  await sleep(Number(paceMs));
}
const statuses = await Promise.all(answers);
console.log(statuses.filter((status) => status === 200).length);
process.exit(0);
