import { Locations } from '../../backup/location.ts';
import { verifyBackup } from '../../backup/verify-backup.ts';
import { RunningConfig } from '../../config/reload.ts';
import { commandClock } from '../../lib/clock.ts';
import { createLogger } from '../../observability/line-logger.ts';
import type { BackupResponse } from '../../protocol/database/backups.ts';
import { openSecrets } from '../../server/access/open-secrets.ts';
import { verbOfActions } from '../actions.ts';
import { clientFlags, printJson, sayingRefusals } from '../client/client-verb.ts';
import { openCalls } from '../database-calls.ts';
import { configOf } from '../load-config.ts';
import { serverFlags } from '../server-address.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { place, tablesOf } from './place.ts';
import { restoreBackup, restoreModes } from './restore.ts';

type Action = (context: VerbContext, location: string, backupId: string) => Promise<number>;

/** `sundew backup`: makes, lists, restores and verifies backups, of a running server or of a data directory at rest. */
export const backup = verbOfActions<Action>(
  {
    name: 'backup',
    summary: 'Make, list, restore and verify backups, through a server or on a data directory that no server uses.',
    actions: [
      { name: 'create', takes: ['LOCATION', 'BACKUP_ID'], help: 'Make a backup.', run: create },
      { name: 'list', takes: ['LOCATION'], help: 'Print the backups of a location.', run: list },
      { name: 'restore', takes: ['LOCATION', 'BACKUP_ID'], help: 'Restore a backup.', run: restoreBackup },
      { name: 'verify', takes: ['LOCATION', 'BACKUP_ID'], help: 'Read all of a backup; needs no server.', run: verify },
    ],
    flags: [
      {
        flag: '--connection',
        value: 'NAME',
        help: 'The connection that allows the location; `list` needs it.',
      },
      {
        flag: '--tables',
        value: 'LIST',
        of: ['create', 'restore'],
        help: 'Tables with commas between them; all unless given.',
      },
      {
        flag: '--format',
        value: 'portable|native',
        of: ['create'],
        help: 'Lines of JSON, or the files of ranges.',
      },
      { flag: '--base', value: 'BACKUP_ID', of: ['create'], help: 'Copy only what has changed since this backup.' },
      { ...restoreModes, of: ['restore'] },
      { flag: '--json', help: 'JSON.' },
      // A verification reads the location itself.
      ...clientFlags.map((each) =>
        serverFlags.includes(each) ? { ...each, of: ['create', 'list', 'restore'] } : each,
      ),
    ],
  },
  (run, context, [location = '', backupId = '']) => sayingRefusals(context, () => run(context, location, backupId)),
);

async function create(context: VerbContext, location: string, backupId: string): Promise<number> {
  await using database = await openCalls(context);
  context.explain(`backing up to ${location}\n`);
  const what = { ...tablesOf(context), ...baseOf(context), ...formatOf(context) };
  const asked = { ...place(context, location), backup_id: backupId, ...what };
  const made = (await database.call('POST', '/db/v1/backup', asked)) as unknown as BackupResponse;
  if (context.args.flags.has('--json')) context.print(`${JSON.stringify(made, null, 2)}\n`);
  else {
    for (const { name, status, error } of made.tables) {
      context.print(`${name}: ${status}${error === undefined ? '' : `: ${error}`}\n`);
    }
    context.print(`${backupId}: ${made.status}\n`);
  }
  if (made.status === 'completed') return exitCodes.done;
  return made.tables.every(({ retryable }) => retryable !== false) ? exitCodes.retry : exitCodes.failed;
}

async function list(context: VerbContext, location: string): Promise<number> {
  await using database = await openCalls(context);
  const query = new URLSearchParams(place(context, location));
  do {
    const page = await database.call('GET', `/db/v1/backups?${query}`);
    for (const each of page.backups as { backup_id: string; timestamp: string; tables: string[] }[]) {
      const line = `${each.backup_id}  ${each.timestamp}  ${each.tables.join(', ')}`;
      context.print(context.args.flags.has('--json') ? `${JSON.stringify(each)}\n` : `${line}\n`);
    }
    query.set('cursor', (page.next_cursor as string | undefined) ?? '');
  } while (query.get('cursor') !== '');
  return exitCodes.done;
}

async function verify(context: VerbContext, location: string, backupId: string): Promise<number> {
  const { flags } = context.args;
  const { store } = openLocations(context).open({ location, connection: flags.get('--connection') }, 'restore.read');
  const { tables } = await verifyBackup(store, backupId, (table) => context.explain(`reading "${table}"\n`));
  if (flags.has('--json')) printJson(context, { backup_id: backupId, tables });
  else {
    for (const { name, documents, files, bytes } of tables) {
      context.print(`${name}: ${documents} documents, ${files} files, ${bytes} bytes\n`);
    }
    context.print(`${backupId}: nothing is wrong\n`);
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

function baseOf({ args }: VerbContext): { base_backup_id?: string } {
  const base = args.flags.get('--base');
  return base === undefined ? {} : { base_backup_id: base };
}

function formatOf({ args }: VerbContext): { format?: string } {
  const format = args.flags.get('--format');
  return format === undefined ? {} : { format };
}
