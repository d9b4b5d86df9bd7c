/** The parameters that the browser of the user brings back. */
export interface Callback {
  readonly state: string;
  /** Either the code, or what went wrong in the words of the protocol. */
  readonly code: string | undefined;
  readonly error: string | undefined;
}

const path = '/callback';

/** A listener on loopback that the partner sends the user's browser back to. */
export class CallbackListener {
  readonly #server: Bun.Server<undefined>;

  /** `take` says what the page is to say, or undefined for a state that is not known. */
  constructor(port: number, take: (callback: Callback) => Promise<string | undefined>) {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port,
      idleTimeout: 30,
      fetch: async (request) => {
        const url = new URL(request.url);
        // A name of another site that leads here is not this listener.
        if (request.headers.get('host') !== `127.0.0.1:${this.port}`) return page(403, 'This address is not served.');
        if (url.pathname !== path) return page(404, 'There is nothing here.');
        if (request.method !== 'GET') return page(405, 'This page is only read.');
        const [code, error] = [url.searchParams.get('code'), url.searchParams.get('error')];
        const state = url.searchParams.get('state') ?? '';
        const said = await take({ state, code: code ?? undefined, error: error ?? undefined });
        return said === undefined ? page(400, 'This link was used before, or is not known.') : page(200, said);
      },
    });
  }

  get port(): number {
    return this.#server.port ?? 0;
  }

  get redirectUri(): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }
}

/** Nothing of the request is repeated on a page. */
function page(status: number, sentence: string): Response {
  const html = `<!doctype html><meta charset="utf-8"><title>Sundew</title><p>${sentence}</p>`;
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'",
    },
  });
}
