import packageFile from '../../package.json' with { type: 'json' };
import { BackupService } from '../backup/backup-service.ts';
import { Locations } from '../backup/location.ts';
import type { RunningConfig } from '../config/reload.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { Secrets } from './access/open-secrets.ts';
import type { Database } from './database/open-database.ts';

interface BackupParts {
  readonly config: RunningConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly database: Pick<Database, 'storage' | 'services'>;
}

/** Backups of the database, at the locations that connections allow. */
export function openBackups({ config, clock, logger, secrets, database }: BackupParts): BackupService {
  const { storage } = database;
  const locations = new Locations({ options: () => config.config, credentials: secrets.credentials, clock });
  return new BackupService({
    storage,
    tables: database.services.tables,
    locations,
    clock,
    version: packageFile.version,
    onFailed: (table, error) => logger.warn('a table could not be backed up', { table }, error),
  });
}
