import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Answer = (request: IncomingMessage, response: ServerResponse, file: Uint8Array) => void;

/** A web server on loopback that serves the files below a folder, as a model hub does, or misbehaves as it is told. */
export class FileHost implements AsyncDisposable {
  /** `METHOD /path range` of every request. */
  readonly requests: string[] = [];
  readonly url: string;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Paths are `/OWNER/NAME/resolve/REVISION/<path below the folder>`. `answers` are used up one by one, then all is well. */
  static async serve(folder: string, answers: Answer[] = []): Promise<FileHost> {
    const server = createServer((request, response) => {
      const path = decodeURIComponent((request.url ?? '').split('/').slice(5).join('/'));
      host.requests.push(`${request.url} ${request.headers.range ?? 'whole'}`);
      (answers.shift() ?? plainFile)(request, response, readFileSync(`${folder}/${path}`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = new FileHost(server);
    return host;
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

export const plainFile: Answer = (request, response, file) => {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  const range = { 'content-range': `bytes ${from}-${file.byteLength - 1}/${file.byteLength}` };
  const length = { 'content-length': String(file.byteLength - from) };
  response.writeHead(from > 0 ? 206 : 200, from > 0 ? { ...range, ...length } : length);
  response.end(file.subarray(from));
};

/** Announces the rest of the file, sends the given number of its bytes and then nothing more. */
export function stallAfter(bytes: number): Answer {
  return (request, response, file) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const range = { 'content-range': `bytes ${from}-${file.byteLength - 1}/${file.byteLength}` };
    response.writeHead(from > 0 ? 206 : 200, { ...range, 'content-length': String(file.byteLength - from) });
    response.write(file.subarray(from, from + bytes));
  };
}

export function status(code: number, text = '', type = 'text/plain'): Answer {
  return (_request, response) => {
    response.writeHead(code, { 'content-type': type, 'content-length': String(text.length) });
    response.end(text);
  };
}
