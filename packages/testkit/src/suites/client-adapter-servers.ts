import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { freePort } from '../free-port.js';

/** A request as a test server saw it, head and body. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** An HTTP server on loopback whose behaviour a test changes while it runs. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Every request whose body has arrived. */
  readonly seen: SeenRequest[];
  /** TCP connections it was given since it began. */
  readonly connections: number;
  /** Those open now. */
  readonly openConnections: number;
  /** What is done with a request; the body has been read. */
  handler: http.RequestListener;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
  /** Opens the same port again. */
  restart(): Promise<void>;
}

/**
 * A server that answers 200 until told otherwise.
 *
 * @param tls - for https: its certificate and key
 */
export async function startTestServer(
  handler: http.RequestListener = ok,
  tls?: https.ServerOptions,
): Promise<TestServer> {
  const sockets = new Set<Socket>();
  const seen: SeenRequest[] = [];
  const state = { handler, connections: 0 };

  const server = tls === undefined ? http.createServer() : https.createServer(tls);
  server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('error', () => {});
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body });
      state.handler(request, response);
    });
  });
  server.on('connection', (socket: Socket) => {
    state.connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;

  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    seen,
    get connections() {
      return state.connections;
    },
    get openConnections() {
      return sockets.size;
    },
    get handler() {
      return state.handler;
    },
    set handler(next) {
      state.handler = next;
    },
    async stop() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.resetAndDestroy();
      await closed;
    },
    restart: () => listen(server, port),
  };
}

function listen(server: http.Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Answers 200 `ok`. */
export const ok: http.RequestListener = (_request, response) => {
  response.end('ok');
};

/** Never answers. */
export const hang: http.RequestListener = () => {};

/** Answers with a status and nothing else. */
export const status =
  (code: number, headers: http.OutgoingHttpHeaders = {}): http.RequestListener =>
  (_request, response) => {
    response.writeHead(code, headers).end(`status ${code}`);
  };

/** Refuses as an elimit server does. */
export const refuse = (retryAfterSeconds = 2): http.RequestListener =>
  status(503, { 'x-bd-error-code': '2004', 'retry-after': String(retryAfterSeconds) });

/** Kills the connection without an answer. */
export const reset: http.RequestListener = (request) => {
  request.socket.resetAndDestroy();
};

/** Kills the connection in the middle of the body. */
export const resetMidBody: http.RequestListener = (request, response) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('half of it', () => request.socket.resetAndDestroy());
};

/** The URL of a port on which nobody listens. */
export async function closedPort(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** A host that swallows SYNs: connecting to it neither succeeds nor fails. */
export interface SilentHost {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Needs no privilege: a thread listens with the shortest backlog and then never accepts. Once a few
 * connections have filled the backlog, the kernel drops every further SYN.
 */
export async function startSilentHost(): Promise<SilentHost> {
  const wake = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     const server = require('node:net').createServer();
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       setImmediate(() => { Atomics.wait(workerData, 0, 0); process.exit(); });
     });`,
    { eval: true, workerData: wake },
  );
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  const fill = await fillBacklog(port);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async close() {
      for (const socket of fill) socket.destroy();
      Atomics.store(wake, 0, 1);
      Atomics.notify(wake, 0);
      await worker.terminate();
    },
  };
}

/** Connects until a connection does not come about any more. */
async function fillBacklog(port: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let isFull = false; !isFull && sockets.length < 64; ) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
    isFull = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(true), 150);
      socket.once('connect', () => {
        clearTimeout(timer);
        resolve(false);
      });
    });
  }
  return sockets;
}
