import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { RunningConfig } from '../../src/config/reload.ts';
import { ServerListener } from '../../src/http/listener/server-listener.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/observability/line-logger.ts';
import type { RunningServer } from '../../src/server/running-server.ts';
import { startServer } from '../../src/server/start-server.ts';
import { startInProcess } from './in-process-server.ts';

/** `bun run test embedded` runs the API tests without a port. */
const isInProcess = process.env.SUNDEW_TEST_TRANSPORT === 'in-process';

export interface Answer<Body = unknown> {
  status: number;
  headers: Headers;
  body: Body;
}

/** A server of this process on a free port and a directory of its own, both gone at the end of the scope. */
export class TestServer implements AsyncDisposable {
  readonly url: string;
  readonly directory: string;
  readonly logLines: string[];
  /** The key that the start has made for an administrator. */
  readonly firstKey: string | undefined;
  readonly #running: RunningServer;
  readonly #keepDirectory: boolean;

  constructor(running: RunningServer, directory: string, logLines: string[], keepDirectory: boolean) {
    this.url = running.url;
    this.firstKey = running.firstKey;
    this.directory = directory;
    this.logLines = logLines;
    this.#running = running;
    this.#keepDirectory = keepDirectory;
  }

  /** Sends JSON (or text as it is) and reads the answer as JSON where it is. */
  async send<Body = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<Body>> {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers,
      ...(text === undefined ? {} : { body: text }),
    });
    const answer = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return { status: response.status, headers: response.headers, body: (isJson ? JSON.parse(answer) : answer) as Body };
  }

  drain(deadlineMs: number): Promise<void> {
    return this.#running.drain(deadlineMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.drain(1_000);
    await this.#running.stop();
    if (!this.#keepDirectory) rmSync(this.directory, { recursive: true, force: true });
  }
}

/** `directory` is kept for a later start when it is given. */
export async function startTestServer(
  options: {
    directory?: string;
    clock?: Clock;
    set?: Record<string, string>;
    environment?: Record<string, string>;
    /** Text of the configuration file. */
    file?: string;
  } = {},
): Promise<TestServer> {
  const clock = options.clock ?? systemClock;
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'sundew-test-'));
  const flags = new Map([
    ['--data-dir', directory],
    ['--port', '0'],
    ['--metrics-port', '0'],
    ...Object.entries(options.set ?? {}),
  ]);
  const environment = { SUNDEW__STORAGE__RESERVE: '0', ...options.environment };
  const { file } = options;
  const load = () => loadConfig({ flags, environment, file: file && 'sundew.yaml', readFile: () => file ?? '' });
  const logLines: string[] = [];
  const start = {
    config: new RunningConfig(load(), load),
    logger: createLogger({ level: 'debug', format: 'json', clock, write: (line) => void logLines.push(line) }),
    clock,
  };
  const running = isInProcess
    ? await startInProcess(start)
    : await startServer({ ...start, listener: new ServerListener('127.0.0.1', 0) });
  return new TestServer(running, directory, logLines, options.directory !== undefined);
}

/** The keys of the first result's hits. */
export function hitKeys(answer: Answer): string[] {
  const body = answer.body as { responses?: { hits: { hits: { _id: string }[] } }[] };
  return body.responses?.[0]?.hits.hits.map((hit) => hit._id) ?? [];
}
