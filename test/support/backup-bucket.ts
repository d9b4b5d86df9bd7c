import S3rver from 's3rver';
import { TemporaryDirectory } from './temporary-directory.ts';
import { startTestServer, type TestServer } from './test-server.ts';

type Answer = Response | 'lose the answer' | undefined;

/**
 * The answer of a store that misbehaves; undefined: the request is answered as it should be. `pass` has the store answer it, with
 * another body where one is given.
 */
export type Misbehaviour = (
  request: Request,
  number: number,
  pass: (body?: Uint8Array<ArrayBuffer>) => Promise<Response>,
) => Answer | Promise<Answer>;

/** An S3-compatible server, s3rver, in this process, with a door before it that may misbehave. */
export class BackupBucket implements AsyncDisposable {
  readonly location = 's3://backups/nightly';
  readonly #folder = new TemporaryDirectory();
  readonly #store: S3rver;
  readonly #door: ReturnType<typeof Bun.serve>;
  misbehave: Misbehaviour = () => undefined;
  /** Method and path of every request. */
  readonly requests: string[] = [];

  private constructor(store: S3rver, port: number, folder: TemporaryDirectory) {
    this.#store = store;
    this.#folder = folder;
    this.#door = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        this.requests.push(`${request.method} ${new URL(request.url).pathname}`);
        const sent = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
        const pass = (body = sent) => {
          const url = new URL(request.url);
          const headers = new Headers(request.headers);
          // The signature is of the name that the client has used.
          headers.set('host', url.host);
          if (body) headers.set('content-length', String(body.byteLength));
          return fetch(`http://127.0.0.1:${port}${url.pathname}${url.search}`, {
            method: request.method,
            headers,
            redirect: 'manual',
            ...(body && { body }),
          });
        };
        const wrong = await this.misbehave(request, this.requests.length, pass);
        if (wrong instanceof Response) return wrong;
        const answer = await pass();
        return wrong === 'lose the answer' ? new Response('lost', { status: 500 }) : answer;
      },
    });
  }

  static async open(): Promise<BackupBucket> {
    const folder = new TemporaryDirectory();
    const store = new S3rver({
      port: 0,
      address: '127.0.0.1',
      silent: true,
      directory: folder.path,
      configureBuckets: [{ name: 'backups', configs: [] }],
    });
    const { port } = await store.run();
    return new BackupBucket(store, port, folder);
  }

  get file(): string {
    return `
connections:
  bucket:
    kind: external_io
    capabilities: [backup.write, restore.read]
    external_io:
      protocol: s3
      endpoint: "http://127.0.0.1:${this.#door.port}"
      region: us-east-1
      buckets: [backups]
      access_key_id: "\${secret:s3.id}"
      secret_access_key: "\${secret:s3.key}"
`;
  }

  async server(): Promise<TestServer> {
    const server = await startTestServer({ file: this.file });
    for (const key of ['s3.id', 's3.key']) await server.send('PUT', `/db/v1/secrets/${key}`, { value: 'S3RVER' });
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#door.stop(true);
    await this.#store.close();
    this.#folder[Symbol.dispose]();
  }
}
