export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  readonly authorization: string | null;
  readonly text: string;
}

type Answer = (request: SeenRequest) => Response | Promise<Response>;

/** A service on loopback that answers as a test says, and keeps what it was asked. */
export class UpstreamServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly url: string;
  readonly #server: Bun.Server<undefined>;

  constructor(answer: Answer) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch: async (request) => {
        const { pathname, search } = new URL(request.url);
        const authorization = request.headers.get('authorization');
        const seen = { method: request.method, path: pathname, search, authorization, text: await request.text() };
        this.requests.push(seen);
        return await answer(seen);
      },
    });
    this.url = `http://127.0.0.1:${this.#server.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}
