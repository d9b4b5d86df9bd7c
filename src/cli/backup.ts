import { Locations } from '../backup/location.ts';
import { verifyBackup } from '../backup/verify-backup.ts';
import { ConfigError } from '../config/config-error.ts';
import { RunningConfig } from '../config/reload.ts';
import { commandClock } from '../lib/clock.ts';
import { createLogger } from '../observability/line-logger.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { openSecrets } from '../server/access/open-secrets.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type Verb, type VerbContext } from './verb.ts';

const usage = 'usage: sundew backup verify LOCATION BACKUP_ID [options]';

/** `sundew backup`: looks after backups. */
export const backup: Verb = {
  name: 'backup',
  summary: 'Verify a backup: read every byte of it and compare the checksums, without restoring it.',
  usage: 'verify LOCATION BACKUP_ID [--connection NAME] [options]',
  flags: [
    { flag: '--connection', value: 'NAME', help: 'A connection of the configuration that allows the location.' },
    { flag: '--json', help: 'JSON.' },
    ...configFlags(),
  ],
  async run(context) {
    const [action, ...rest] = context.args.positionals;
    try {
      if (action === 'verify') return await verify(context, rest);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      context.explain(`${error.code}: ${error.message}\n`);
      return error.retryable ? exitCodes.retry : exitCodes.failed;
    }
    throw new ConfigError(usage);
  },
};

async function verify(context: VerbContext, [location, backupId, ...more]: readonly string[]): Promise<number> {
  if (location === undefined || backupId === undefined || more.length > 0) throw new ConfigError(usage);
  const { flags } = context.args;
  const { store } = openLocations(context).open({ location, connection: flags.get('--connection') }, 'restore.read');
  const report = await verifyBackup(store, backupId, (table) => context.explain(`reading "${table}"\n`));
  if (flags.has('--json')) context.print(`${JSON.stringify(report, null, 2)}\n`);
  else {
    for (const { name, documents, files, bytes } of report.tables) {
      context.print(`${name}: ${documents} documents, ${files} files, ${bytes} bytes\n`);
    }
    context.print(`${report.backupId}: nothing is wrong\n`);
  }
  return exitCodes.done;
}

function openLocations(context: VerbContext): Locations {
  const load = () => configOf(context);
  const config = new RunningConfig(load(), load);
  const logger = createLogger({ level: 'warn', format: 'text', clock: commandClock, write: context.explain });
  const { credentials } = openSecrets({ config, clock: commandClock, logger });
  return new Locations({ options: () => config.config, credentials, clock: commandClock });
}
