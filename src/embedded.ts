import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { clientOver } from './client/client.ts';
import type { OpenDatabase, OpenOptions } from './client/embedded-database.ts';
import { SundewError } from './client/sundew-error.ts';
import { ConfigError } from './config/config-error.ts';
import { readConfigFile } from './config/config-file.ts';
import { loadConfig } from './config/load.ts';
import { storageOptions } from './config/options/storage.ts';
import { RunningConfig } from './config/reload.ts';
import type { App } from './http/listener/app.ts';
import { type Clock, pause, systemClock } from './lib/clock.ts';
import { didYouMean } from './lib/text/did-you-mean.ts';
import { createLogger } from './observability/line-logger.ts';
import { writeToStandardError } from './observability/standard-error.ts';
import { openServices } from './server/open-services.ts';

export { SundewError } from './client/client.ts';
export type { EmbeddedDatabase, OpenOptions } from './client/embedded-database.ts';

/** Names no host: nothing is looked up or sent. */
const origin = 'http://sundew.invalid';
const pollMs = 5;
const optionKinds = { settings: 'object', log: 'function', retries: 'number', apiKey: 'string' } as const;

/** Opens a data directory in this process: see `OpenDatabase`. */
export const open: OpenDatabase = async (directory, options = {}) => {
  requireFiles();
  checkOptions(directory, options);
  const { settings = {}, log, retries, apiKey } = options;
  // The program may change it later.
  const workingDirectory = process.cwd();
  const absolute = (path: string) => resolve(workingDirectory, path);
  const file = { file: 'settings', readFile: () => JSON.stringify(settings) };
  const load = () => {
    refuseDirectory(readConfigFile(file.file, file.readFile));
    return loadConfig({
      ...file,
      absolute,
      flags: new Map([['--data-dir', absolute(directory)]]),
      environment: {},
      isOwn: true,
    });
  };
  const config = new RunningConfig(load(), load);
  const clock = systemClock;
  const logger = createLogger({
    level: config.config.logLevel,
    format: 'json',
    clock,
    write: log === undefined ? () => undefined : outlived(log),
  });
  const closing = Promise.withResolvers<void>();
  let isClosing = false;
  const ofClient = new WeakSet<Request>();
  const client = clientOver({
    transport: (request) => {
      ofClient.add(request);
      return handler(request);
    },
    url: origin,
    headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    ...(retries === undefined ? {} : { retries }),
  });
  const services = await openServices({ config, logger, clock, socket: undefined });
  const { app, database } = services;
  const begin = async () => {
    // A request counts as one in flight from the moment it is handed over, the first one too.
    await app.prepareCalls();
    return await services.makeFirstKey();
  };
  const firstKey = await begin().catch(async (error) => {
    await services.close();
    throw error;
  });
  const handler = async (request: Request) => (isClosing ? closedAnswer(request) : await app.handle(request));
  const close = async () => {
    if (!isClosing) {
      isClosing = true;
      drain(app, { deadlineMs: config.config.drainDeadlineMs, clock, ofClient })
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
    transaction: (...given) => client.transaction(...given),
    sql: (...given) => client.sql(...given),
    request: (...given) => client.request(...given),
    handler,
    firstKey,
    failed: database.failed,
    close,
    [Symbol.asyncDispose]: close,
  };
};

/** Threads, the engine and processes of models are started by their files, which a bundle has left behind. */
function requireFiles(): void {
  if (existsSync(new URL('./storage/writer/storage-writer.worker.ts', import.meta.url))) return;
  throw new Error(
    'sundew cannot be inside a bundle, because its threads and its engine are files of their own; bundle with --external sundew, and install the package beside the program',
  );
}

/** Checks what the compiler tells of in TypeScript. Throws `ConfigError`. */
function checkOptions(directory: unknown, options: unknown): void {
  if (typeof directory !== 'string' || directory === '') {
    throw new ConfigError(`the directory must be a text that is not empty, not ${shown(directory)}`);
  }
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError(`the options must be an object, such as { settings: {} }, not ${shown(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(optionKinds, name) ? optionKinds[name as keyof OpenOptions] : undefined;
    if (kind === undefined) {
      const guess = didYouMean(name, Object.keys(optionKinds));
      throw new ConfigError(`there is no option "${name}"${guess === undefined ? '' : `; did you mean ${guess}?`}`);
    }
    if (value !== undefined && typeof value !== kind) {
      throw new ConfigError(`the option "${name}" must be ${kind === 'object' ? 'an' : 'a'} ${kind}`);
    }
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** Throws `ConfigError` where the settings name another directory: that of the call is the one that is opened. */
function refuseDirectory(settings: ReadonlyMap<string, unknown>): void {
  const { key, aliases = [] } = storageOptions.dataDir;
  const named = [key, ...aliases].find((name) => settings.has(name));
  if (named === undefined) return;
  throw new ConfigError(
    `the settings have "${named}", but the first argument of "open" names the directory; leave the setting out`,
  );
}

/** Takes lines as the callback of the program does, and outlives what that throws: the first error is told, and nothing stops. */
function outlived(log: (line: string) => unknown): (line: string) => void {
  let isTold = false;
  const tell = (error: unknown) => {
    if (isTold) return;
    isTold = true;
    const reason = error instanceof Error ? error.message : String(error);
    writeToStandardError(`sundew: the callback "log" has failed, and lines of the log are lost: ${reason}\n`);
  };
  return (line) => {
    try {
      const returned = log(line);
      if (returned instanceof Promise) returned.catch(tell);
    } catch (error) {
      tell(error);
    }
  };
}

const closedMessage = 'the database was closed; open it again';

/** Not retryable, as that of a server that stops is: nothing comes back here. */
function closedAnswer({ method }: Request): Response {
  const message = closedMessage;
  const body = JSON.stringify({ code: 'unavailable', error: message, message, retryable: false });
  const headers = { 'content-type': 'application/json' };
  return new Response(method === 'HEAD' ? null : body, { status: 503, headers });
}

interface Drain {
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** The requests of the client of this process. */
  readonly ofClient: WeakSet<Request>;
}

/**
 * Refuses new requests and waits for the others; those that are still open at the deadline are answered `unavailable`.
 * Scans of the client end at once: the program that closes the database may never take their next page.
 */
async function drain({ inFlight }: App, { deadlineMs, clock, ofClient }: Drain): Promise<void> {
  inFlight.refuseNew();
  const closed = new SundewError('unavailable', closedMessage, {
    status: 503,
    retryable: false,
    retryAfterMs: undefined,
    requestId: undefined,
  });
  const startedMs = clock.monotonicMs();
  while (inFlight.count > 0 && clock.monotonicMs() - startedMs < deadlineMs) {
    inFlight.cutPages(closed, (request) => ofClient.has(request));
    await pause(clock, pollMs);
  }
  inFlight.expireAll();
}
