import { join } from 'node:path';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import type { Placement, Role } from '../machine/placement.ts';
import type { Batch } from '../workloads/batch-bodies.ts';
import { ChildProcess, freePort } from './child-process.ts';
import { TemporaryDirectory } from './temporary-directory.ts';

const repository = join(import.meta.dir, '..', '..');

/** The script that `bun run start` runs: it sets up what is missing, then runs the server in the same process. */
export const startScript = join(repository, 'scripts', 'sundew.ts');
/** The program that the script runs. */
const main = join(repository, 'build', 'server', 'main.js');

/** A script that is run in place of our own, and what it is told. */
export interface ServerProgram {
  script: string;
  arguments(directory: string, port: number, metricsPort: number): string[];
}

interface StartOptions {
  placement: Placement;
  role?: Role;
  program?: ServerProgram;
  /** After those of every server. */
  arguments?: readonly string[];
  environment?: Readonly<Record<string, string>>;
}

interface RestartOptions extends StartOptions {
  /** Works on the data directory while no server holds it. */
  prepare?: (directory: string) => Promise<void>;
}

/** The arguments of a server with its own ports and data directory. */
export function serveArguments(directory: string, port: number, metricsPort: number): string[] {
  return ['serve', '--port', String(port), '--metrics-port', String(metricsPort), '--data-dir', directory];
}

/** Installs and builds what is missing or stale, on all cores, so that no measurement pays for it. */
export async function setUp(placement: Placement): Promise<void> {
  const command = placement.command('all', [process.execPath, startScript, 'version']);
  const child = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'inherit'] });
  if ((await child.exited) !== 0) throw new Error('the server could not be set up');
}

/** Our server in a process of its own on a fresh data directory, without the set-up check. */
export class SundewServer implements AsyncDisposable {
  readonly metricsPort: number;
  readonly #directory: TemporaryDirectory;
  #process: ChildProcess;

  private constructor(child: ChildProcess, metricsPort: number, directory: TemporaryDirectory) {
    this.#process = child;
    this.metricsPort = metricsPort;
    this.#directory = directory;
  }

  static async start(options: StartOptions): Promise<SundewServer> {
    const directory = new TemporaryDirectory();
    const port = freePort();
    const metricsPort = freePort();
    try {
      const child = await startChild(directory, port, metricsPort, options);
      return new SundewServer(child, metricsPort, directory);
    } catch (error) {
      directory[Symbol.dispose]();
      throw error;
    }
  }

  get process(): ChildProcess {
    return this.#process;
  }

  /** Stops the server and starts another process on the same data. When that is ready, answers when it was started. */
  async restart(options: RestartOptions): Promise<number> {
    const { port } = this.#process;
    await this.#process[Symbol.asyncDispose]();
    await options.prepare?.(this.#directory.path);
    const started = performance.now();
    this.#process = await startChild(this.#directory, port, this.metricsPort, options);
    return started;
  }

  get port(): number {
    return this.#process.port;
  }

  async createTable(name: string, body: unknown = {}): Promise<void> {
    await this.request('POST', `/db/v1/tables/${name}`, JSON.stringify(body));
  }

  async dropTable(name: string): Promise<void> {
    await this.request('DELETE', `/db/v1/tables/${name}`);
  }

  /** Sends ready batches one after another on one connection; an acknowledged batch is durable. */
  async load(table: string, batches: Iterable<Batch>): Promise<void> {
    const path = `/db/v1/tables/${table}/batch`;
    await this.sendAll(Iterator.from(batches).map((batch) => requestBytes('POST', path, batch.body)));
  }

  /** Sends ready messages one after another on one connection; every answer must be 2xx. A 503 is waited out and resent. */
  async sendAll(messages: Iterable<Uint8Array>): Promise<void> {
    const connection = await HttpConnection.open(this.port);
    try {
      for (const message of messages) {
        let response = await connection.send(message);
        while (response.status === 503) {
          await Bun.sleep(retryDelayMs(response.body));
          response = await connection.send(message);
        }
        expectSuccess(response);
      }
    } finally {
      connection.close();
    }
  }

  /** One request on a fresh connection; the parsed JSON answer, undefined when it is empty. */
  async request(method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<unknown> {
    const connection = await HttpConnection.open(this.port);
    try {
      const response = expectSuccess(await connection.send(requestBytes(method, path, body)));
      return response.body.length === 0 ? undefined : JSON.parse(Buffer.from(response.body).toString('utf8'));
    } finally {
      connection.close();
    }
  }

  async metrics(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.metricsPort}/metrics`);
    if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
    return response.text();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    this.#directory[Symbol.dispose]();
  }
}

function startChild(
  directory: TemporaryDirectory,
  port: number,
  metricsPort: number,
  options: StartOptions,
): Promise<ChildProcess> {
  const { script, arguments: words } = options.program ?? { script: main, arguments: serveArguments };
  return ChildProcess.start({
    name: 'sundew',
    command: [process.execPath, script, ...words(directory.path, port, metricsPort), ...(options.arguments ?? [])],
    port,
    readyPath: '/readyz',
    placement: options.placement,
    role: options.role ?? 'server',
    environment: { SUNDEW__LOG__LEVEL: 'warn', ...options.environment },
  });
}

function retryDelayMs(body: Uint8Array): number {
  const parsed: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
  const asked = typeof parsed === 'object' && parsed !== null && 'retry_after_ms' in parsed && parsed.retry_after_ms;
  return typeof asked === 'number' ? asked : 50;
}
