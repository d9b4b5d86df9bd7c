import { clientOver } from './client/client.ts';
import type { OpenDatabase } from './client/embedded-database.ts';
import { loadConfig } from './config/load.ts';
import { RunningConfig } from './config/reload.ts';
import type { App } from './http/listener/app.ts';
import { type Clock, pause, systemClock } from './lib/clock.ts';
import { createLogger } from './observability/line-logger.ts';
import { openServices } from './server/open-services.ts';

export { SundewError } from './client/client.ts';
export type { EmbeddedDatabase, OpenOptions } from './client/embedded-database.ts';

/** Names no host: nothing is looked up or sent. */
const origin = 'http://sundew.invalid';
const pollMs = 5;

/** Opens a data directory in this process: see `OpenDatabase`. */
export const open: OpenDatabase = async (directory, options = {}) => {
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
    transaction: (...given) => client.transaction(...given),
    sql: (...given) => client.sql(...given),
    request: (...given) => client.request(...given),
    handler: app.handle,
    failed: database.failed,
    close,
    [Symbol.asyncDispose]: close,
  };
};

/** Refuses new requests and waits for the others; those that are still open at the deadline are answered `unavailable`. */
async function drain({ inFlight }: App, deadlineMs: number, clock: Clock): Promise<void> {
  inFlight.refuseNew();
  const startedMs = clock.monotonicMs();
  while (inFlight.count > 0 && clock.monotonicMs() - startedMs < deadlineMs) await pause(clock, pollMs);
  inFlight.expireAll();
}
