export interface HttpResponse {
  status: number;
  head: string;
  body: Uint8Array;
}

const headEnd = Buffer.from('\r\n\r\n');

/**
 * Collects the bytes of one HTTP/1.1 response at a time (no pipelining). Knows content-length and chunked bodies and the
 * statuses without a body; anything else is a protocol error, because a load client must never guess.
 */
export class HttpResponseReader {
  #bytes: Buffer = Buffer.alloc(0);
  #head: { status: number; text: string; bodyAt: number; length: number | 'chunked' } | undefined;

  /** Adds received bytes; returns the response once it is complete. Bytes after it are an error. */
  push(chunk: Uint8Array): HttpResponse | undefined {
    this.#bytes = this.#bytes.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#bytes, chunk]);
    this.#head ??= this.#readHead();
    if (!this.#head) return undefined;
    const { status, text, bodyAt, length } = this.#head;
    if (length === 'chunked') {
      const body = decodeChunked(this.#bytes.subarray(bodyAt));
      return body ? this.#finish({ status, head: text, body }) : undefined;
    }
    const received = this.#bytes.length - bodyAt;
    if (received < length) return undefined;
    if (received > length) throw new Error(`${received - length} bytes after the end of the response`);
    return this.#finish({ status, head: text, body: this.#bytes.subarray(bodyAt) });
  }

  #finish(response: HttpResponse): HttpResponse {
    this.#bytes = Buffer.alloc(0);
    this.#head = undefined;
    return response;
  }

  #readHead() {
    const end = this.#bytes.indexOf(headEnd);
    if (end < 0) return undefined;
    const text = this.#bytes.toString('latin1', 0, end);
    const status = Number(text.slice(9, 12));
    const lower = text.toLowerCase();
    const bodyAt = end + headEnd.length;
    if (status === 204 || status === 304) return { status, text, bodyAt, length: 0 };
    const lengthAt = lower.indexOf('\r\ncontent-length:');
    if (lengthAt >= 0) return { status, text, bodyAt, length: Number.parseInt(lower.slice(lengthAt + 17), 10) };
    if (lower.includes('\r\ntransfer-encoding: chunked')) return { status, text, bodyAt, length: 'chunked' as const };
    throw new Error(`a response without a length: ${text.split('\r\n')[0]}`);
  }
}

/** The body of a chunked message, or undefined while its last chunk is missing. */
function decodeChunked(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const start = lineEnd + 2;
    if (bytes.length < start + size + 2) return undefined;
    if (size === 0) return Buffer.concat(parts);
    parts.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}
