import packageFile from '../../package.json' with { type: 'json' };
import { BackupService } from '../backup/backup-service.ts';
import { Copier } from '../backup/copy/copier.ts';
import { Locations } from '../backup/location.ts';
import { RestoreJob } from '../backup/restore/restore-job.ts';
import { RestoreService } from '../backup/restore/restore-service.ts';
import type { RunningConfig } from '../config/reload.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { Secrets } from './access/open-secrets.ts';
import type { Database } from './database/open-database.ts';

interface BackupDeps {
  readonly config: RunningConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly database: Pick<Database, 'storage' | 'log' | 'jobs' | 'services'>;
}

interface OpenBackups {
  readonly services: { readonly backups: BackupService; readonly restores: RestoreService };
  stop(): Promise<void>;
}

/** Backups of the database at the locations that connections allow, and their restores. */
export async function openBackups({ config, clock, logger, secrets, database }: BackupDeps): Promise<OpenBackups> {
  const { storage, log, jobs } = database;
  const { tables } = database.services;
  const locations = new Locations({ options: () => config.config, credentials: secrets.credentials, clock });
  const copier = new Copier();
  const backups = new BackupService({
    storage,
    tables,
    log,
    locations,
    copier,
    clock,
    version: packageFile.version,
    onFailed: (table, error) => logger.warn('a table could not be backed up', { table }, error),
  });
  const job = new RestoreJob({
    directory: storage.directory,
    tables,
    log,
    clock,
    locations,
    onLinked: (table, index, { refused, ...rows }) => {
      if (refused === undefined) logger.info('vectors were linked as in the backup', { table, index, ...rows });
      else logger.warn('links of a backup were left out', { table, index, ...rows, reason: refused });
    },
    onFailed: (job_id, table, error) => logger.warn('a restore failed', { job_id, table }, error),
  });
  const restores = new RestoreService({ jobs, job, tables, locations });
  await restores.start();
  return { services: { backups, restores }, stop: () => copier.stop() };
}
