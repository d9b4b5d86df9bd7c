import type { ShownRestore } from '../../backup/restore/restore-service.ts';
import { cancelled } from '../../backup/restore/restore-state.ts';
import type { RestoreJobBody } from '../../protocol/database/restores.ts';

/** Tables that have failed and are named. */
const failuresShown = 100;

/** A restore as it is on the wire. */
export function restoreJobBody({ record, state }: ShownRestore): RestoreJobBody {
  const { scope, tableName, backupId, cancelRequested } = state;
  const tables = state.tables ?? state.refused ?? [];
  // One that is cancelled while it waits never runs, so it has noted nothing.
  const { code, error } = record.phase === 'cancelled' ? cancelled : state;
  const of = (status: string) => tables.filter((each) => each.status === status).length;
  const isOver = record.expiresMs !== null;
  const failure = error === undefined ? undefined : `${code}: ${error}`;
  return {
    job_id: String(record.jobId),
    attempt_id: record.attempt,
    scope,
    ...(tableName === undefined ? {} : { table_name: tableName }),
    backup_id: backupId,
    phase: record.phase,
    cancel_requested: cancelRequested,
    // Publishing and durability are one transaction, so nothing waits between them.
    durability_pending_table_count: 0,
    published_table_count: of('published'),
    completed_table_count: tables.length - of('waiting'),
    total_table_count: (state.tables ?? state.refused ?? state.tableNames ?? []).length,
    ...(isOver ? { result: resultOf(state, record.phase) } : {}),
    ...(isOver && failure !== undefined ? { error: failure } : {}),
    created_at_ms: record.createdMs,
    updated_at_ms: record.updatedMs,
    ...(record.expiresMs === null ? {} : { expires_at_ms: record.expiresMs }),
  };
}

function resultOf(state: ShownRestore['state'], phase: string): NonNullable<RestoreJobBody['result']> {
  const tables = state.tables ?? state.refused ?? [];
  const of = (status: string) => tables.filter((each) => each.status === status).length;
  const failures = tables.filter(({ status }) => status === 'failed');
  const partly = of('published') > 0 ? 'partial' : 'failed';
  return {
    restore: 'triggered',
    durability: phase === 'succeeded' || of('published') > 0 ? 'committed' : 'none',
    status: phase === 'succeeded' ? 'completed' : partly,
    triggered_table_count: state.tables === undefined ? 0 : tables.length - of('skipped'),
    committed_table_count: of('published'),
    durability_pending_table_count: 0,
    skipped_table_count: of('skipped'),
    failed_table_count: failures.length,
    failure_details: failures.slice(0, failuresShown).map(({ name, code = '', error = '' }) => ({
      table_name: name,
      error: `${code}: ${error}`,
      table_name_truncated: false,
    })),
    failure_details_truncated: failures.length > failuresShown,
  };
}
