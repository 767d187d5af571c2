import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Sampler } from './sampler.js';

const MOST_CLIENTS = 20;
/** A client that does not read is let go rather than fed. */
const MOST_UNREAD_BYTES = 1_000_000;

/** Sends each sample to those who watch: one serialisation for all of them. */
export class LiveFeed {
  readonly #sampler: Sampler;
  readonly #message: () => string;
  readonly #clients = new Set<ServerResponse>();
  #stop: (() => void) | undefined;
  #isClosed = false;

  /** @param message - the data of one event, on one line */
  constructor(sampler: Sampler, message: () => string) {
    this.#sampler = sampler;
    this.#message = message;
  }

  /** Takes a response over; false if there are too many already, or no more samples. */
  add(req: IncomingMessage, res: ServerResponse): boolean {
    if (this.#isClosed || this.#clients.size >= MOST_CLIENTS) return false;
    res.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    if (req.method === 'HEAD') {
      res.end();
      return true;
    }
    res.write(`retry: 3000\ndata: ${this.#message()}\n\n`);
    this.#clients.add(res);
    res.once('close', () => this.#remove(res));
    this.#stop ??= this.#sampler.onTick(() => this.#send());
    return true;
  }

  close(): void {
    this.#isClosed = true;
    for (const res of this.#clients) res.end();
    this.#clients.clear();
    this.#stop?.();
    this.#stop = undefined;
  }

  #send(): void {
    const data = `data: ${this.#message()}\n\n`;
    for (const res of this.#clients) {
      if (res.writableLength > MOST_UNREAD_BYTES) res.destroy();
      else res.write(data);
    }
  }

  #remove(res: ServerResponse): void {
    this.#clients.delete(res);
    if (this.#clients.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  }
}
