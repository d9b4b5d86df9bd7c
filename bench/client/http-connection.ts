import type { Socket } from 'bun';
import { type HttpResponse, HttpResponseReader } from './http-response.ts';

interface Waiter {
  resolve(response: HttpResponse): void;
  reject(error: Error): void;
}

/**
 * One keep-alive HTTP/1.1 connection with one request in flight: whole request messages go out as ready-made bytes. It does
 * so little that the server, not the client, is what a measurement shows.
 */
export class HttpConnection {
  readonly #reader = new HttpResponseReader();
  #socket: Socket | undefined;
  #unsent: Uint8Array | undefined;
  #waiter: Waiter | undefined;
  #broken: Error | undefined;

  static async open(port: number, hostname = '127.0.0.1'): Promise<HttpConnection> {
    const connection = new HttpConnection();
    connection.#socket = await Bun.connect({
      hostname,
      port,
      socket: {
        data: (_socket, chunk) => connection.#receive(chunk),
        drain: () => connection.#flush(),
        close: () => connection.#fail(new Error('the server closed the connection')),
        error: (_socket, error) => connection.#fail(error),
      },
    });
    connection.#socket.setNoDelay(true);
    return connection;
  }

  /** Sends one complete request message (see `requestBytes`) and resolves with the whole response. */
  send(message: Uint8Array): Promise<HttpResponse> {
    if (this.#waiter) throw new Error('a request is already in flight on this connection');
    if (this.#broken) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#unsent = message;
      this.#flush();
    });
  }

  close(): void {
    this.#socket?.end();
    this.#socket = undefined;
  }

  #flush(): void {
    if (!this.#unsent) return;
    const written = this.#socket?.write(this.#unsent) ?? 0;
    this.#unsent = written >= this.#unsent.length ? undefined : this.#unsent.subarray(Math.max(0, written));
  }

  #receive(chunk: Uint8Array): void {
    try {
      const response = this.#reader.push(chunk);
      if (!response) return;
      const waiter = this.#waiter;
      this.#waiter = undefined;
      waiter?.resolve(response);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #fail(error: Error): void {
    this.#broken = error;
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.reject(error);
  }
}

/** A complete HTTP/1.1 request message. A body given as bytes is sent as JSON. */
export function requestBytes(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Uint8Array {
  const payload = body === undefined ? undefined : Buffer.from(body);
  const bodyHeaders = payload ? `content-type: application/json\r\ncontent-length: ${payload.length}\r\n` : '';
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n${more.join('')}${bodyHeaders}\r\n`,
  );
  return payload ? Buffer.concat([head, payload]) : head;
}

/** Throws unless the status is 2xx, with the start of the body: a benchmark of errors measures nothing. */
export function expectSuccess(response: HttpResponse): HttpResponse {
  if (response.status >= 200 && response.status < 300) return response;
  throw new Error(`status ${response.status}: ${Buffer.from(response.body).toString('utf8', 0, 400)}`);
}
