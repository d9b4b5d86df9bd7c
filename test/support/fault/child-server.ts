import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import type { DurableShadow } from './durable-shadow.ts';
import type { FaultControl } from './fault-control.ts';
import { faultLibrary } from './fault-library.ts';

const repository = join(import.meta.dir, '../../..');

export interface ChildServerOptions {
  dataDir: string;
  /** Disk faults of this server, switched while it runs. */
  control?: FaultControl;
  shadow?: DurableShadow;
  /** `name` or `name:N`: the process kills itself there. */
  failpoint?: string | undefined;
  environment?: Record<string, string>;
  arguments?: string[];
  /** The file that the process starts with. Default: the sources. */
  main?: string;
  /** Soft and hard bound of open files (RLIMIT_NOFILE). */
  openFilesMax?: number;
  /** How long the start may take, in milliseconds. Default 60,000: a busy machine makes it slow, not wrong. */
  startDeadlineMs?: number;
  /** False: the start is over when the routes of the database answer, ready or not. */
  awaitReady?: boolean;
}

export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | number | null;
}

/** The server ended before it was ready. */
export class StartFailure extends Error {
  readonly ending: Ending;
  readonly log: string;

  constructor(ending: Ending, log: string) {
    super(`the server did not start: exit ${ending.code ?? ending.signal}\n${log.slice(-4_000)}`);
    this.ending = ending;
    this.log = log;
  }
}

/** A server in a process of its own, to be killed, stopped, or made to suffer. */
export class ChildServer implements AsyncDisposable {
  readonly url: string;
  readonly metricsUrl: string;
  readonly ended: Promise<Ending>;
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>;
  #log = '';
  #ending: Ending | undefined;

  private constructor(child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>, port: number, metricsPort: number) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
    this.metricsUrl = `http://127.0.0.1:${metricsPort}`;
    const drained = Promise.all([this.#collect(child.stdout), this.#collect(child.stderr)]);
    this.ended = child.exited.then(async () => {
      await drained;
      const ending: Ending = { code: child.exitCode, signal: child.signalCode };
      this.#ending = ending;
      return ending;
    });
  }

  /** Resolves when the server says that it is ready. @throws StartFailure when it ends before. */
  static async start(options: ChildServerOptions): Promise<ChildServer> {
    const server = await ChildServer.spawn(options);
    try {
      await server.ready(options.startDeadlineMs ?? 60_000, options.awaitReady === false ? '/db/v1/status' : '/readyz');
    } catch (error) {
      await server.kill();
      throw error;
    }
    return server;
  }

  /** Starts the process without waiting for it. */
  static async spawn(options: ChildServerOptions): Promise<ChildServer> {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const main = options.main ?? join(repository, 'src/main.ts');
    const serve = [main, 'serve', '--host', '127.0.0.1', '--data-dir', options.dataDir];
    const ports = ['--port', String(port), '--metrics-port', String(metricsPort)];
    const command = [process.execPath, ...serve, ...ports, ...(options.arguments ?? [])];
    const limited = options.openFilesMax
      ? ['/bin/sh', '-c', `ulimit -n ${options.openFilesMax} && exec "$@"`, 'sh', ...command]
      : command;
    const child = Bun.spawn(limited, {
      cwd: repository,
      env: { ...process.env, SUNDEW__STORAGE__RESERVE: '0', ...(await environmentOf(options)) },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    return new ChildServer(child, port, metricsPort);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** All that the process has written to its two outputs. */
  get log(): string {
    return this.#log;
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  async ready(deadlineMs: number, path = '/readyz'): Promise<void> {
    const end = performance.now() + deadlineMs;
    while (performance.now() < end) {
      if (this.#ending) throw new StartFailure(this.#ending, this.#log);
      const answer = await fetch(this.url + path, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
      if (answer?.status === 200) return;
      await Promise.race([Bun.sleep(10), this.ended]);
    }
    throw new Error(`the server is not ready after ${deadlineMs} ms\n${this.#log.slice(-4_000)}`);
  }

  async kill(): Promise<Ending> {
    this.#child.kill('SIGKILL');
    return this.ended;
  }

  /** Asks for a graceful end. */
  stop(): Promise<Ending> {
    this.#child.kill('SIGTERM');
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#log += decoder.decode(chunk, { stream: true });
  }
}

async function environmentOf(options: ChildServerOptions): Promise<Record<string, string>> {
  const preload = options.control || options.shadow ? { LD_PRELOAD: await faultLibrary() } : {};
  return {
    ...preload,
    ...(options.control ? { FAULT_CONTROL: options.control.path } : {}),
    ...options.shadow?.environment,
    ...(options.failpoint ? { SUNDEW_FAILPOINT: options.failpoint } : {}),
    ...options.environment,
  };
}

/** Two ports that nobody held a moment ago. */
