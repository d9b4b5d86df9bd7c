import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite';
import type {
  AccessChange,
  AccessRows,
  ApiKeyRecord,
  GrantRecord,
  MembershipRecord,
  RowFilterRecord,
  UserRecord,
} from './access-records.ts';

/** Everything, by whichever connection. */
export function readAccessRows(database: Database): AccessRows {
  const all = <Row>(sql: string): Row[] => {
    using statement = database.prepare(sql);
    return statement.all() as Row[];
  };
  return {
    users: all<UserRecord>(
      'SELECT name, password_hash AS passwordHash, metadata, created_ms AS createdMs FROM principals ORDER BY name',
    ),
    grants: all<GrantRecord>(
      'SELECT subject, resource_type AS resourceType, resource, level FROM grants ORDER BY subject, resource_type, resource, level',
    ),
    memberships: all<MembershipRecord>(
      'SELECT user_name AS userName, subject FROM memberships ORDER BY user_name, subject',
    ),
    apiKeys: all<ApiKeyRecord>(
      'SELECT id AS keyId, name, user_name AS userName, secret_sha256 AS secretSha256, permissions, ' +
        'row_filter AS rowFilter, created_ms AS createdMs, expires_ms AS expiresMs FROM api_keys ORDER BY created_ms, id',
    ),
    rowFilters: all<RowFilterRecord>(
      'SELECT subject, table_name AS tableName, filter FROM row_filters ORDER BY subject, table_name',
    ),
  };
}

/** The writer's side of who may do what in `catalog.db`; its call is made inside a transaction. */
export class AccessTable {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#statements = prepare(database);
  }

  /** Returns how many rows were written or removed. */
  change({ remove = {}, put = {} }: AccessChange): number {
    const {
      dropUser,
      dropGrant,
      dropMembership,
      dropKey,
      dropFilter,
      putUser,
      putGrant,
      putMembership,
      putKey,
      putFilter,
    } = this.#statements;
    let rows = 0;
    const run = <Item>(
      statement: Statement,
      items: readonly Item[] = [],
      values: (item: Item) => SQLQueryBindings[],
    ) => {
      for (const item of items) statement.run(...values(item));
      rows += items.length;
    };
    run(dropUser, remove.users, (name) => [name]);
    run(dropGrant, remove.grants, (row) => [row.subject, row.resourceType, row.resource, row.level]);
    run(dropMembership, remove.memberships, (row) => [row.userName, row.subject]);
    run(dropKey, remove.apiKeys, (keyId) => [keyId]);
    run(dropFilter, remove.rowFilters, (row) => [row.subject, row.tableName]);
    run(putUser, put.users, (row) => [row.name, row.passwordHash, row.metadata, row.createdMs]);
    run(putGrant, put.grants, (row) => [row.subject, row.resourceType, row.resource, row.level]);
    run(putMembership, put.memberships, (row) => [row.userName, row.subject]);
    run(putKey, put.apiKeys, (row) => [
      row.keyId,
      row.name,
      row.userName,
      row.secretSha256,
      row.permissions,
      row.rowFilter,
      row.createdMs,
      row.expiresMs,
    ]);
    run(putFilter, put.rowFilters, (row) => [row.subject, row.tableName, row.filter]);
    return rows;
  }

  close(): void {
    for (const statement of Object.values(this.#statements)) statement.finalize();
  }
}

function prepare(database: Database) {
  const statement = (sql: string): Statement => database.prepare(sql);
  return {
    dropUser: statement('DELETE FROM principals WHERE name = ?'),
    dropGrant: statement('DELETE FROM grants WHERE subject = ? AND resource_type = ? AND resource = ? AND level = ?'),
    dropMembership: statement('DELETE FROM memberships WHERE user_name = ? AND subject = ?'),
    dropKey: statement('DELETE FROM api_keys WHERE id = ?'),
    dropFilter: statement('DELETE FROM row_filters WHERE subject = ? AND table_name = ?'),
    putUser: statement(
      'INSERT OR REPLACE INTO principals (name, password_hash, metadata, created_ms) VALUES (?, ?, ?, ?)',
    ),
    putGrant: statement('INSERT OR REPLACE INTO grants (subject, resource_type, resource, level) VALUES (?, ?, ?, ?)'),
    putMembership: statement('INSERT OR REPLACE INTO memberships (user_name, subject) VALUES (?, ?)'),
    putKey: statement(
      'INSERT OR REPLACE INTO api_keys (id, name, user_name, secret_sha256, permissions, row_filter, created_ms, expires_ms) ' +
        'VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    putFilter: statement('INSERT OR REPLACE INTO row_filters (subject, table_name, filter) VALUES (?, ?, ?)'),
  };
}
