import type { LimitOptions } from '../../config/limits.ts';
import { limitsOf } from '../../config/load.ts';
import type { Config } from '../../config/options.ts';
import type { ForeignDatabases } from '../../connections/foreign/foreign-databases.ts';
import type { TemplateMedia } from '../../enrichment/media/template-media.ts';
import type { Providers } from '../../inference/providers/providers.ts';
import type { Clock } from '../../lib/clock.ts';
import { armFailpoint } from '../../lib/failpoint.ts';
import type { Health } from '../../observability/health.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { LocalRangeLog } from '../../replication/local-range-log.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import { openStorage, type Storage } from '../../storage/open-storage.ts';
import type { WriterThread } from '../../storage/writer/writer-thread.ts';
import { openHealth, type TableOf } from '../observability/service-health.ts';

/** Logs that a service of the database failed, which is then run again. */
export function serviceFailed(logger: Logger): (service: string, error: unknown, attempt: number) => void {
  return (service, error, attempt) =>
    logger.error('a background service failed and is started again', { service, attempt }, error);
}

export interface DatabaseOptions {
  /** Asked at every use, so that what can be reloaded takes effect. */
  readonly options: () => Config;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Counts and measures what the database does; nothing listens for it here. */
  readonly metrics: Metrics;
  /** The models that queries and indexes use; without them, whatever needs one is refused. */
  readonly providers?: Providers;
  /** The databases elsewhere whose tables queries may join; without them, foreign tables are refused. */
  readonly foreign?: ForeignDatabases;
  /** Reads the images and documents that templates name; without it, they are refused. */
  readonly media?: TemplateMedia;
  /** The thread that writes, where it was started ahead. */
  readonly writer?: WriterThread | undefined;
  /** Bounds in place of those of the options and of the product. */
  readonly limits?: Partial<LimitOptions>;
}

/** The services that every service of the database uses. */
export interface DatabaseCore extends DatabaseOptions {
  readonly limits: LimitOptions;
  readonly health: Health;
  readonly storage: Storage;
  readonly log: RangeLog;
}

/** Opens the storage. `onFailed` is told of a failed sync; `tablesOpen` names the table of a range once tables are known. */
export async function openCore(
  given: DatabaseOptions,
  onFailed: () => void,
  tablesOpen: Promise<TableOf>,
): Promise<DatabaseCore> {
  const { options, clock, logger, metrics } = given;
  const { dataDir: directory, createsDataDir: creates, failpoint, reserveBytes } = options();
  // The writer arms its own thread.
  armFailpoint(failpoint);
  const health = openHealth(logger, metrics, tablesOpen);
  const storage = await openStorage({
    directory,
    creates,
    clock,
    failpoint,
    reserveBytes,
    health,
    writer: given.writer,
    onCommit({ requests, durationMs }) {
      metrics.observe('writerGroup', [], requests);
      metrics.observe('writerCommit', [], durationMs / 1_000);
    },
    onFatal(error) {
      logger.error('the data directory failed; the server stops and recovers at its next start', {}, error);
      onFailed();
    },
    onServiceFailed: serviceFailed(logger),
  });
  for (const warning of storage.start.warnings) logger.warn(warning);
  if (storage.directory.isOpenToOthers()) {
    logger.warn('every user of the machine may read the data directory; "chmod o= DIRECTORY" takes that from them');
  }
  return {
    ...given,
    limits: { ...limitsOf(options()), ...given.limits },
    health,
    storage,
    log: new LocalRangeLog(storage),
  };
}
