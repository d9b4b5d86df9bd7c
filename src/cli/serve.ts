import { fstatSync } from 'node:fs';
import { ConfigError } from '../config/config-error.ts';
import { limits } from '../config/limits.ts';
import { type LoadedConfig, limitsOf } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { RunningConfig } from '../config/reload.ts';
import { ServerListener } from '../http/listener/server-listener.ts';
import type { TlsFiles, TlsMaterial } from '../http/listener/tls/tls-files.ts';
import { type Clock, systemClock, within } from '../lib/clock.ts';
import { createLogger } from '../observability/line-logger.ts';
import type { Logger } from '../observability/logger.ts';
import { writeToStandardError } from '../observability/standard-error.ts';
import type { RunningServer, StartServer } from '../server/running-server.ts';
import type { ListenAddress } from './listen-address.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type Verb, type VerbContext } from './verb.ts';

/** `sundew serve`. The heavy part is loaded by `load` after the port is open. */
export function serveVerb(load: () => Promise<StartServer>): Verb {
  return {
    name: 'serve',
    summary: 'Start the server.',
    usage: '[options]',
    takesNoWords: true,
    flags: configFlags(),
    async run(context) {
      const loaded = configOf(context);
      const { host, port, allowInsecurePublicBind, authEnabled } = loaded.config;
      const tls = tlsFilesOf(loaded.config);
      const address = await addressOf({ host, port }, allowInsecurePublicBind || authEnabled);
      return await runServer(context, { loaded, address, load, tls });
    },
  };
}

/** The module that resolves names is loaded only where there is one: the port opens without it. */
async function addressOf(address: ListenAddress, allowPublic: boolean): Promise<ListenAddress> {
  if (address.host === '127.0.0.1') return address;
  const { bindAddress } = await import('./listen-address.ts');
  return await bindAddress(address, allowPublic);
}

interface ServerToRun {
  /** The configuration of the command line. */
  readonly loaded: LoadedConfig;
  readonly address: ListenAddress;
  readonly load: () => Promise<StartServer>;
  readonly tls?: TlsFiles | undefined;
}

/** Opens the port, then everything else, and serves until a signal or a fault ends it. */
export async function runServer(context: VerbContext, { loaded, address, load, tls }: ServerToRun): Promise<number> {
  limitsOf(loaded.config);
  const logger = loggerOf(loaded, systemClock);
  const config = new RunningConfig(loaded, () => configOf(context));
  config.onChange(({ logLevel }) => {
    logger.level = logLevel;
  });
  warnOf(config, logger);
  const secured = tls === undefined ? undefined : { files: tls, ...(await import('./tls.ts')) };
  const listener = listenerOf(address, loaded.config.keepAliveMs, secured?.openTls(secured.files));
  if (tls === undefined && loaded.config.authEnabled && address.host !== '127.0.0.1' && address.host !== '::1') {
    logger.warn('credentials and answers are sent unencrypted: give --tls-cert and --tls-key, or put a proxy in front');
  }
  const stopping = stopSignals(logger);
  secured?.keepTls(secured.files, listener, logger);
  onReloadSignal(config, logger);
  const startServer = await load();
  const server = await startServer({ config, listener, logger, clock: systemClock });
  if (server.firstKey !== undefined) context.print(firstKeyNotice(server.firstKey));
  logger.info('ready', { url: server.url, ...server.facts, pid: process.pid });
  const code = await Promise.race([stopping, server.fatal.then(() => exitCodes.storageFailed)]);
  if (code !== exitCodes.done) return code;
  return stopServer(server, config.config.drainDeadlineMs, { logger, clock: systemClock });
}

/**
 * Drains and closes. What hangs ends with the process: whatever was acknowledged is durable, and the next start takes up
 * what was not closed.
 */
export async function stopServer(
  server: Pick<RunningServer, 'drain' | 'stop'>,
  drainDeadlineMs: number,
  { logger, clock }: { logger: Logger; clock: Clock },
): Promise<number> {
  await server.drain(drainDeadlineMs);
  if (await within(clock, limits.closeDeadlineMs, server.stop())) {
    logger.info('stopped');
    return exitCodes.done;
  }
  logger.warn('the server did not close in time and ends as after a crash; what was acknowledged is durable', {
    waited_ms: limits.closeDeadlineMs,
  });
  return exitCodes.failed;
}

/** Printed rather than logged: a log is kept, and read by others. */
function firstKeyNotice(key: string): string {
  return `\nThis data directory has its first user now, "admin". Its key, which is shown this once:\n\n  ${key}\n\nSend it as "Authorization: Bearer KEY".\n\n`;
}

function loggerOf({ config }: LoadedConfig, clock: Clock): Logger {
  const { logLevel: level, logFormat } = config;
  return createLogger({
    level,
    // Asked with the first line, after the port is open.
    get format() {
      if (logFormat !== 'auto') return logFormat;
      return isTerminal() ? 'text' : 'json';
    },
    clock,
    write: writeToStandardError,
  });
}

/** Only for a device is the stream asked, which takes the runtime ten milliseconds to load. */
function isTerminal(): boolean {
  return fstatSync(2).isCharacterDevice() && process.stderr.isTTY;
}

/** Throws `ConfigError` for a certificate without its key. */
function tlsFilesOf({ tlsCert: cert, tlsKey: key, tlsCa: ca }: Config): TlsFiles | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key, ca };
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  throw new ConfigError('TLS needs both tls.cert and tls.key; tls.ca is for them');
}

function listenerOf({ host, port }: ListenAddress, keepAliveMs: number, tls: TlsMaterial | undefined): ServerListener {
  try {
    return new ServerListener(host, port, keepAliveMs, tls);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the port ${port} of ${host} cannot be opened: ${reason} Give another one with --port`, {
      cause: error,
    });
  }
}

/** Resolves at the first SIGTERM or SIGINT. A second one ends the process at once: what was acknowledged is durable. */
function stopSignals(logger: Logger): Promise<number> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (asked) process.exit(signal === 'SIGINT' ? 130 : 143);
      asked = true;
      logger.info('stopping', { signal });
      resolve(exitCodes.done);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

function warnOf({ warnings }: RunningConfig, logger: Logger): void {
  for (const warning of warnings) logger.warn(warning);
}

function onReloadSignal(config: RunningConfig, logger: Logger): void {
  process.on('SIGHUP', () => {
    try {
      const waiting = config.reload();
      warnOf(config, logger);
      logger.info('configuration reloaded', { needs_restart: waiting.length === 0 ? undefined : waiting.join(', ') });
    } catch (error) {
      logger.error('configuration not reloaded; what ran before still runs', {}, error);
    }
  });
}
