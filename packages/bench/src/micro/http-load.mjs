// The clients of http-arms.ts: on each message { port, connections, requests } sends so many requests, one at a time on
// each keep-alive connection, and tells how many answers came of each status.
import { connect } from 'node:net';

const REQUEST = Buffer.from(
  'GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n',
);
const HEAD_END = '\r\n\r\n';

function client(port, take, saw) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.setNoDelay(true);
    let text = '';
    const ask = () => {
      if (take()) socket.write(REQUEST);
      else {
        socket.end();
        resolve();
      }
    };
    socket.on('connect', ask);
    socket.on('error', reject);
    socket.on('data', (data) => {
      text += data.latin1Slice();
      const head = text.indexOf(HEAD_END);
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(text)[1]);
      if (text.length < head + HEAD_END.length + length) return;
      saw(text.slice(9, 12));
      text = '';
      ask();
    });
  });
}

async function drive({ port, connections, requests }) {
  let left = requests;
  const statuses = {};
  const take = () => left-- > 0;
  const saw = (status) => {
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  await Promise.all(Array.from({ length: connections }, () => client(port, take, saw)));
  process.send({ statuses });
}

process.on('message', (order) => void drive(order));
