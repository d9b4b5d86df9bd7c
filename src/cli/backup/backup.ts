import { Locations } from '../../backup/location.ts';
import { verifyBackup } from '../../backup/verify-backup.ts';
import { RunningConfig } from '../../config/reload.ts';
import { commandClock, pause } from '../../lib/clock.ts';
import { createLogger } from '../../observability/line-logger.ts';
import type { BackupResponse } from '../../protocol/database/backups.ts';
import type { RestoreJobBody } from '../../protocol/database/restores.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { openSecrets } from '../../server/access/open-secrets.ts';
import { verbOfActions } from '../actions.ts';
import { clientFlags } from '../client/client-verb.ts';
import { type DatabaseCalls, openCalls, RefusedError } from '../database-calls.ts';
import { configOf } from '../load-config.ts';
import { exitCodes, type VerbContext } from '../verb.ts';

const pollMs = 200;

type Action = (context: VerbContext, location: string, backupId: string) => Promise<number>;

/** `sundew backup`: makes, lists, restores and verifies backups, of a running server or of a data directory at rest. */
export const backup = verbOfActions<Action>(
  {
    name: 'backup',
    summary: 'Make, list, restore and verify backups, through a server or on a data directory that no server uses.',
    actions: [
      { name: 'create', takes: ['LOCATION', 'BACKUP_ID'], help: 'Make a backup.', run: create },
      { name: 'list', takes: ['LOCATION'], help: 'Print the backups of a location.', run: list },
      { name: 'restore', takes: ['LOCATION', 'BACKUP_ID'], help: 'Restore a backup.', run: restore },
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
      {
        flag: '--mode',
        value: 'fail_if_exists|skip_if_exists|overwrite',
        of: ['restore'],
        help: 'What happens to tables that exist; `fail_if_exists` unless given.',
      },
      { flag: '--json', help: 'JSON.' },
      ...clientFlags,
    ],
  },
  async (run, context, [location = '', backupId = '']) => {
    try {
      return await run(context, location, backupId);
    } catch (error) {
      if (!(error instanceof ServiceError) && !(error instanceof RefusedError)) throw error;
      const isRefusal = error instanceof RefusedError;
      context.explain(isRefusal ? `${error.message}\n` : `${error.code}: ${error.message}\n`);
      return (isRefusal ? error.isRetryable : error.retryable) ? exitCodes.retry : exitCodes.failed;
    }
  },
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
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    if (cursor !== '') query.set('cursor', cursor);
    const page = await database.call('GET', `/db/v1/backups?${query}`);
    for (const each of page.backups as { backup_id: string; timestamp: string; tables: string[] }[]) {
      const line = `${each.backup_id}  ${each.timestamp}  ${each.tables.join(', ')}`;
      context.print(context.args.flags.has('--json') ? `${JSON.stringify(each)}\n` : `${line}\n`);
    }
    cursor = page.next_cursor as string | undefined;
  }
  return exitCodes.done;
}

async function restore(context: VerbContext, location: string, backupId: string): Promise<number> {
  await using database = await openCalls(context);
  const mode = context.args.flags.get('--mode');
  const more = mode === undefined ? {} : { restore_mode: mode };
  const asked = { ...place(context, location), backup_id: backupId, ...tablesOf(context), ...more };
  const job = await endOf(database, await database.call('POST', '/db/v1/restore', asked), context);
  if (context.args.flags.has('--json')) context.print(`${JSON.stringify(job, null, 2)}\n`);
  else {
    for (const { table_name: table, error } of job.result?.failure_details ?? []) context.print(`${table}: ${error}\n`);
    context.print(`${backupId}: ${job.phase}${job.error === undefined ? '' : `: ${job.error}`}\n`);
  }
  return job.phase === 'succeeded' ? exitCodes.done : exitCodes.failed;
}

/** Waits for a restore, and says how far it is. */
async function endOf(
  { call }: DatabaseCalls,
  submitted: Record<string, unknown>,
  { explain }: VerbContext,
): Promise<RestoreJobBody> {
  let shown = '';
  for (let job = submitted as unknown as RestoreJobBody; ; ) {
    const progress = `${job.completed_table_count} of ${job.total_table_count || '?'} tables`;
    if (progress !== shown) explain(`restore ${job.job_id}: ${progress}\n`);
    shown = progress;
    if (job.expires_at_ms !== undefined) return job;
    await pause(commandClock, pollMs);
    job = (await call('GET', `/db/v1/restore/jobs/${job.job_id}`)) as unknown as RestoreJobBody;
  }
}

async function verify(context: VerbContext, location: string, backupId: string): Promise<number> {
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

function place({ args }: VerbContext, location: string): { location: string; connection?: string } {
  const connection = args.flags.get('--connection');
  return connection === undefined ? { location } : { location, connection };
}

function tablesOf({ args }: VerbContext): { table_names?: string[] } {
  const tables = args.flags.get('--tables');
  return tables === undefined ? {} : { table_names: tables.split(',') };
}

function baseOf({ args }: VerbContext): { base_backup_id?: string } {
  const base = args.flags.get('--base');
  return base === undefined ? {} : { base_backup_id: base };
}

function formatOf({ args }: VerbContext): { format?: string } {
  const format = args.flags.get('--format');
  return format === undefined ? {} : { format };
}
