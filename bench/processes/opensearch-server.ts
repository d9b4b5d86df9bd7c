import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import type { Placement } from '../machine/placement.ts';
import { ChildProcess, freePort } from './child-process.ts';
import { fetchJars } from './java.ts';
import { TemporaryDirectory } from './temporary-directory.ts';

const sources = join(import.meta.dir, '..', 'peers', 'opensearch');
/** The options that OpenSearch itself starts with. */
const heap = ['-Xms1g', '-Xmx1g'];

/** One node of OpenSearch in a process of its own, in the server's place. */
export class OpenSearchServer implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #directory: TemporaryDirectory;

  private constructor(child: ChildProcess, directory: TemporaryDirectory) {
    this.process = child;
    this.#directory = directory;
  }

  static async start(java: string, placement: Placement): Promise<OpenSearchServer> {
    const classPath = await fetchJars('opensearch-2.19.3', join(sources, 'pom.xml'));
    const directory = new TemporaryDirectory();
    mkdirSync(join(directory.path, 'config'));
    const port = freePort();
    const program = [join(sources, 'SearchNode.java'), directory.path, String(port)];
    const access = '--enable-native-access=ALL-UNNAMED';
    const child = await ChildProcess.start({
      name: 'OpenSearch',
      command: [java, ...heap, access, '-cp', classPath, ...program],
      port,
      readyPath: '/',
      placement,
    });
    return new OpenSearchServer(child, directory);
  }

  /** One request on a connection of its own; it has to succeed. */
  async request(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: string): Promise<void> {
    const connection = await HttpConnection.open(this.process.port);
    try {
      expectSuccess(await connection.send(requestBytes(method, path, body)));
    } finally {
      connection.close();
    }
  }

  async createIndex(name: string, mappings: object): Promise<void> {
    const settings = { number_of_shards: 1, number_of_replicas: 0 };
    await this.request('PUT', `/${name}`, JSON.stringify({ settings, mappings }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
    this.#directory[Symbol.dispose]();
  }
}
