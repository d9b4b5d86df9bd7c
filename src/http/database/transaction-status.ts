import type { Static } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import type { sessionDetails, sessionStatus } from '../../protocol/database/transactions.ts';
import type { Session } from '../../tables/transactions/session.ts';
import type { TransactionSessions } from '../../tables/transactions/transaction-sessions.ts';
import { singleNode } from './constant-members.ts';

type Leases = Pick<TransactionSessions, 'leaseState' | 'leaseExpiresMs'>;

export function renderSession(session: Session, leases: Leases): Static<typeof sessionStatus> {
  return render(session, leases, stagedTables(session));
}

/** The session with what it has staged in each table, and the versions that it has read. */
export function renderSessionDetails(session: Session, leases: Leases): Static<typeof sessionDetails> {
  const tables = stagedTables(session);
  return {
    ...render(session, leases, tables),
    tables,
    read_snapshots: session.snapshots,
    savepoint_ids: session.savepointIds,
  };
}

interface StagedTable {
  table: string;
  writes: number;
  deletes: number;
}

function stagedTables(session: Session): StagedTable[] {
  return [...session.writes.all()].map(([table, keys]) => {
    const deletes = [...keys.values()].filter(
      ({ base, transforms }) => base === null && transforms.length === 0,
    ).length;
    return { table, writes: keys.size - deletes, deletes };
  });
}

function render(session: Session, leases: Leases, tables: readonly StagedTable[]): Static<typeof sessionStatus> {
  const savepoints = session.savepointIds.length;
  return {
    transaction_id: session.id,
    owner_node_id: singleNode.id,
    begin_timestamp: timestamp(session.beganMs),
    last_touched_timestamp: timestamp(session.touchedMs),
    lease_expires_at: timestamp(leases.leaseExpiresMs(session)),
    lease_state: leases.leaseState(session),
    sync_level: session.syncLevel,
    staged_table_count: tables.length,
    staged_read_count: session.reads.length,
    staged_write_count: tables.reduce((sum, { writes }) => sum + writes, 0),
    staged_delete_count: tables.reduce((sum, { deletes }) => sum + deletes, 0),
    read_snapshot_count: session.snapshots.length,
    savepoint_count: savepoints,
    savepoint_limit: limits.savepointsMax,
    remaining_savepoints: limits.savepointsMax - savepoints,
    durable: false,
  };
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
