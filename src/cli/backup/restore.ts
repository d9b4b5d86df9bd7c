import { commandClock, pause } from '../../lib/clock.ts';
import type { RestoreJobBody } from '../../protocol/database/restores.ts';
import { clientFlags, sayingRefusals, usageOf } from '../client/client-verb.ts';
import { type DatabaseCalls, openCalls } from '../database-calls.ts';
import { exitCodes, type Verb, type VerbContext } from '../verb.ts';
import { place, tablesOf } from './place.ts';

const pollMs = 200;

export const restoreModes = {
  flag: '--mode',
  value: 'fail_if_exists|skip_if_exists|overwrite',
  help: 'What happens to tables that exist; `fail_if_exists` unless given.',
};

/** `sundew restore`: as `sundew backup restore`. */
export const restore: Verb = {
  name: 'restore',
  summary: 'Restore a backup, through a server or into a data directory that no server uses.',
  usage: 'LOCATION BACKUP_ID [options]',
  flags: [
    { flag: '--connection', value: 'NAME', help: 'The connection that allows the location.' },
    { flag: '--tables', value: 'LIST', help: 'Tables with commas between them; all unless given.' },
    restoreModes,
    { flag: '--json', help: 'JSON.' },
    ...clientFlags,
  ],
  async run(context) {
    const [location, backupId, ...more] = context.args.positionals;
    if (location === undefined || backupId === undefined || more.length > 0) throw usageOf(restore);
    return await sayingRefusals(context, () => restoreBackup(context, location, backupId));
  },
};

/** Restores a backup and waits for the end of it. */
export async function restoreBackup(context: VerbContext, location: string, backupId: string): Promise<number> {
  await using database = await openCalls(context, { mayMake: true });
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
