import { clientOver, type SundewClient } from './client/client.ts';
import { loadConfig } from './config/load.ts';
import { RunningConfig } from './config/reload.ts';
import type { App } from './http/listener/app.ts';
import { type Clock, pause, systemClock } from './lib/clock.ts';
import { createLogger } from './observability/line-logger.ts';
import { openServices } from './server/open-services.ts';

export { SundewError } from './client/client.ts';

export interface OpenOptions {
  /**
   * Options of the server by their keys, as in its configuration file: `{ inference: { models_dir: './models' } }` or
   * `{ 'inference.models_dir': './models' }`. Those of listeners mean nothing here. No variable of the environment is read.
   */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Takes each line of the log as JSON; there is none unless given. */
  readonly log?: (line: string) => void;
  /** Attempts beside the first one, as of `connect`; 2 unless given. */
  readonly retries?: number;
  /** Sent as a bearer credential, where authentication is on. */
  readonly apiKey?: string;
}

/** A database in this process. */
export interface EmbeddedDatabase extends SundewClient, AsyncDisposable {
  /**
   * Answers a request of the HTTP interface: `new Elysia().mount('/search', db.handler)`. Whoever serves it to others says who
   * may ask; foreign web pages and unknown hosts are not refused here.
   */
  readonly handler: (request: Request) => Promise<Response>;
  /** Resolves when the disk has failed a sync: what was acknowledged is durable, and the directory has to be opened again. */
  readonly failed: Promise<void>;
  /** Waits for what is being answered, closes the directory and ends every thread and process. */
  close(): Promise<void>;
}

/** Names no host: nothing is looked up or sent. */
const origin = 'http://sundew.invalid';
const pollMs = 5;

/**
 * Opens the data directory, which is made where there is none, and all services over it, without a port. Models are loaded
 * by the first request for them. Installs no signal handler and never ends the process. Throws an Error that names the process
 * which holds the directory, or an unknown setting.
 */
export async function open(directory: string, options: OpenOptions = {}): Promise<EmbeddedDatabase> {
  const { settings = {}, log, retries, apiKey } = options;
  const load = () =>
    loadConfig({
      flags: new Map([['--data-dir', directory]]),
      environment: {},
      file: 'settings.json',
      readFile: () => JSON.stringify(settings),
    });
  const config = new RunningConfig(load(), load);
  const clock = systemClock;
  const logger = createLogger({
    level: config.config.logLevel,
    format: 'json',
    clock,
    write: log ?? (() => undefined),
  });
  const services = await openServices({ config, logger, clock, socket: undefined });
  const { app, database } = services;
  const closing = Promise.withResolvers<void>();
  let isClosing = false;
  const client = clientOver({
    transport: app.handle,
    url: origin,
    headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    ...(retries === undefined ? {} : { retries }),
  });
  const close = async () => {
    if (!isClosing) {
      isClosing = true;
      drain(app, config.config.drainDeadlineMs, clock)
        .then(() => services.close())
        .then(closing.resolve, closing.reject);
    }
    await closing.promise;
  };
  const { inference } = client;
  return {
    inference,
    table: (name) => client.table(name),
    createTable: (...given) => client.createTable(...given),
    tables: (...given) => client.tables(...given),
    commit: (...given) => client.commit(...given),
    request: (...given) => client.request(...given),
    handler: app.handle,
    failed: database.failed,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Refuses new requests and waits for the others; those that are still open at the deadline are answered `unavailable`. */
async function drain({ inFlight }: App, deadlineMs: number, clock: Clock): Promise<void> {
  inFlight.refuseNew();
  const startedMs = clock.monotonicMs();
  while (inFlight.count > 0 && clock.monotonicMs() - startedMs < deadlineMs) await pause(clock, pollMs);
  inFlight.expireAll();
}
