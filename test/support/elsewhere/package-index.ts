import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface IndexOptions {
  /** Answers as older indexes do: HTML, without sizes. */
  readonly html?: boolean;
  /** Names of the files that are listed; the wheel is behind each of them. */
  readonly filenames?: readonly string[];
  /** Bytes of the wheel after which its first transfer stalls, for the test to cut. */
  readonly stallAfter?: number;
}

/** A Python package index on loopback with one wheel of one package. */
export class PackageIndex implements AsyncDisposable {
  /** `METHOD /path range` of every request. */
  readonly requests: string[] = [];
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/simple`;
  }

  static async serve(wheel: Uint8Array, options: IndexOptions = {}): Promise<PackageIndex> {
    const { html = false, filenames = ['tiny-1.0-py3-none-any.whl'], stallAfter } = options;
    const sha256 = new Bun.CryptoHasher('sha256').update(wheel).digest('hex');
    let stalls = stallAfter === undefined ? 0 : 1;
    const server = createServer((request, response) => {
      index.requests.push(`${request.method} ${request.url} ${request.headers.range ?? 'whole'}`);
      if (request.url === '/simple/tiny/') {
        const files = filenames.map((filename) => ({ filename, url: `../../files/${filename}`, hashes: { sha256 } }));
        const type = html ? 'text/html' : 'application/vnd.pypi.simple.v1+json';
        response.writeHead(200, { 'content-type': type });
        const links = files.map(({ filename, url }) => `<a href="${url}#sha256=${sha256}">${filename}</a><br>`);
        const sized = files.map((file) => ({ ...file, size: wheel.byteLength }));
        response.end(html ? `<html><body>${links.join('\n')}</body></html>` : JSON.stringify({ files: sized }));
      } else if (request.url?.startsWith('/files/')) {
        const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
        const rest = wheel.subarray(from);
        const range = `bytes ${from}-${wheel.byteLength - 1}/${wheel.byteLength}`;
        const status = from > 0 ? 206 : 200;
        response.writeHead(status, { 'content-length': rest.byteLength, ...(from > 0 && { 'content-range': range }) });
        if (request.method === 'HEAD') response.end();
        else if (stalls > 0) {
          stalls -= 1;
          response.write(rest.subarray(0, stallAfter));
        } else response.end(rest);
      } else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const index = new PackageIndex(server);
    return index;
  }

  /** Breaks every connection. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
