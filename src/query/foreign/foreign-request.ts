import { checkMembers, invalidQuery, isObject, type Members, member, readString } from '../nodes/query-members.ts';

/** A table of a database elsewhere, by the name that a query gives it. */
export interface ForeignSource {
  readonly connection: string;
  readonly table: string;
  /** The column whose values are the keys of the rows. */
  readonly keyColumn: string;
  /** Columns that are read; all when undefined. */
  readonly columns: readonly string[] | undefined;
}

const sourcesMax = 8;
const keyColumnDefault = 'id';

/** Reads `foreign_sources`. Fails with `invalid_query`. */
export function readForeignSources(request: Members): ReadonlyMap<string, ForeignSource> {
  const value = member(request, 'foreign_sources');
  if (value === undefined) return new Map();
  if (!isObject(value)) throw invalidQuery('foreign_sources', 'must be an object of names and foreign tables');
  const names = Object.keys(value);
  if (names.length > sourcesMax) throw invalidQuery('foreign_sources', `has at most ${sourcesMax} entries`);
  return new Map(names.map((name) => [name, readSource(value[name], `foreign_sources.${name.slice(0, 64)}`)]));
}

function readSource(value: unknown, where: string): ForeignSource {
  if (!isObject(value)) throw invalidQuery(where, 'must be an object such as {"connection": "crm", "table": "people"}');
  if (member(value, 'dsn') !== undefined) {
    const what =
      'a request may not give an address: have the operator configure a connection, and name it in "connection"';
    throw invalidQuery(where, what);
  }
  checkMembers(value, ['type', 'connection', 'table', 'postgres_table', 'key', 'columns'], where);
  const connection = readString(value, 'connection', where);
  const table = readString(value, 'table', where) ?? readString(value, 'postgres_table', where);
  if (!connection || !table) throw invalidQuery(where, 'needs a "connection" and a "table"');
  const columns = member(value, 'columns');
  return {
    connection,
    table,
    keyColumn: readString(value, 'key', where) ?? keyColumnDefault,
    columns: columns === undefined ? undefined : readColumns(columns, where),
  };
}

/** Names, or objects with a name; the types are those that the database says. */
function readColumns(value: unknown, where: string): string[] {
  if (!Array.isArray(value)) throw invalidQuery(where, '"columns" must be an array of {"name"}');
  return value.map((column: unknown) => {
    const name = isObject(column) ? readString(column, 'name', `${where}.columns`) : column;
    if (typeof name === 'string' && name !== '') return name;
    throw invalidQuery(where, '"columns" must be an array of {"name"}');
  });
}
