const HEAD_END = '\r\n\r\n';
const CHUNKS_END = '0\r\n\r\n';

/** Reads one HTTP/1.1 answer at a time, as far as a load generator must: its status and where it ends. */
export class AnswerReader {
  #text = '';
  #bodyFrom = -1;
  /** Where the answer ends, or -1 for one in chunks. */
  #endsAt = 0;
  status = 0;
  keepsAlive = true;
  complete = false;

  push(chunk: Buffer): void {
    this.#text += chunk.toString('latin1');
    if (this.#bodyFrom < 0) this.#readHead();
    if (this.#bodyFrom < 0) return;
    this.complete =
      this.#endsAt >= 0 ? this.#text.length >= this.#endsAt : this.#text.endsWith(CHUNKS_END);
  }

  reset(): void {
    this.#text = '';
    this.#bodyFrom = -1;
    this.status = 0;
    this.keepsAlive = true;
    this.complete = false;
  }

  #readHead(): void {
    const end = this.#text.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#text.slice(0, end).toLowerCase();
    const status = Number(head.slice(9, 12));
    if (status === 100) {
      this.#text = this.#text.slice(end + HEAD_END.length);
      this.#readHead();
      return;
    }
    this.status = status;
    this.keepsAlive = !head.includes('\r\nconnection: close');
    this.#bodyFrom = end + HEAD_END.length;
    const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
    if (length !== undefined) this.#endsAt = this.#bodyFrom + Number(length);
    else this.#endsAt = head.includes('\r\ntransfer-encoding: chunked') ? -1 : this.#bodyFrom;
  }
}
