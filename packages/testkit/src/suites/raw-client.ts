import { connect, type Socket } from 'node:net';

/** How long {@link RawClient.until} and {@link eventually} are patient, in milliseconds. */
const PATIENCE_MS = 15_000;
/** Received text is kept up to this length; the rest is only counted. */
const KEPT_CHARACTERS = 100_000;

/** A client that speaks HTTP by the byte, so that it can do what well-behaved ones never do. */
export class RawClient {
  readonly #socket: Socket;
  #text = '';
  #bytes = 0;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.length;
      if (this.#text.length < KEPT_CHARACTERS) this.#text += chunk.toString('latin1');
    });
    socket.on('error', () => {}); // resets are what it is for
    socket.on('close', () => {
      this.#closed = true;
    });
  }

  /** A connection to a port of the loopback. */
  static open(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(new RawClient(socket)));
      socket.once('error', reject);
    });
  }

  /** What has been received, as latin1. */
  get text(): string {
    return this.#text;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(data: string): this {
    this.#socket.write(data, 'latin1');
    return this;
  }

  /** Sends a request: its line, `Host`, and the header lines given. */
  request(line: string, ...headers: string[]): this {
    return this.send([`${line} HTTP/1.1`, 'Host: test', ...headers, '', ''].join('\r\n'));
  }

  /** Reads no further; the kernel's buffers fill up. */
  pause(): this {
    this.#socket.pause();
    return this;
  }

  resume(): this {
    this.#socket.resume();
    return this;
  }

  /** Leaves, with a FIN. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** Leaves, with a RST. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  /** Waits until what was received matches. */
  until(pattern: RegExp): Promise<void> {
    return eventually(
      () => pattern.test(this.#text),
      () => `${pattern} in ${JSON.stringify(this.#text.slice(0, 500))}`,
    );
  }

  untilClosed(): Promise<void> {
    return eventually(
      () => this.#closed,
      () => 'the connection to close',
    );
  }
}

/** Waits until something has become true. For what only the kernel can decide; it fails after fifteen seconds. */
export async function eventually(
  isTrue: () => boolean,
  what: string | (() => string),
): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  while (!isTrue()) {
    if (performance.now() > until) {
      throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
