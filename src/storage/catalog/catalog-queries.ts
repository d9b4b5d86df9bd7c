import type { Database } from 'bun:sqlite';
import { schemaVersion } from '../connection.ts';
import type { RangeId } from '../write-request.ts';
import type {
  EnrichmentRecord,
  IndexRecord,
  RangeFactsRecord,
  RangeRecord,
  TableDefinition,
  TableRecord,
} from './catalog-records.ts';

const rangeColumns =
  'id AS rangeId, table_id AS tableId, start_key AS startKey, end_key AS endKey, generation, ' +
  'first_sequence AS firstSequence';

/** The format that tells the part of an index from its incarnation, and the one with a state of each table. */
const partsVersion = 4;
const tableStatesVersion = 5;
const enrichmentsVersion = 7;

function enrichmentQueries(database: Database, version: number) {
  if (version < enrichmentsVersion) return { all: (): EnrichmentRecord[] => [], finalize: () => {} };
  const rows = database.prepare(
    'SELECT part_id AS partId, name, config, state, replaced_by AS replacedBy FROM enrichments ' +
      'WHERE table_id = ? ORDER BY part_id',
  );
  return { all: (tableId: number) => rows.all(tableId) as EnrichmentRecord[], finalize: () => rows.finalize() };
}

/** Queries on a catalog file, by whichever connection. A check reads those of earlier formats too. */
export function catalogQueries(database: Database) {
  const version = schemaVersion(database);
  const state = version < tableStatesVersion ? "'live' AS state" : 'state';
  const tableColumns = `id AS tableId, name, ${state}, created_ms AS createdMs, record`;
  const partId = version < partsVersion ? 'incarnation' : 'part_id';
  const indexColumns = `table_id AS tableId, name, incarnation, ${partId} AS partId, config, state`;
  const tableRows = database.prepare(`SELECT ${tableColumns} FROM tables ORDER BY name`);
  const tableByName = database.prepare(`SELECT ${tableColumns} FROM tables WHERE name = ?`);
  const tableById = database.prepare(`SELECT ${tableColumns} FROM tables WHERE id = ?`);
  const rangesOf = database.prepare(`SELECT ${rangeColumns} FROM ranges WHERE table_id = ? ORDER BY start_key`);
  const rangeById = database.prepare(`SELECT ${rangeColumns} FROM ranges WHERE id = ?`);
  const rangeRows = database.prepare(`SELECT ${rangeColumns} FROM ranges ORDER BY id`);
  const indexesOf = database.prepare(`SELECT ${indexColumns} FROM indexes WHERE table_id = ? ORDER BY name`);

  const { all: enrichments, finalize: finalizeEnrichments } = enrichmentQueries(database, version);
  const counterRow = database.prepare('SELECT value FROM counters WHERE name = ?');

  const complete = (row: unknown): TableRecord | undefined => {
    if (row === null) return undefined;
    const table = row as Omit<TableRecord, 'ranges' | 'indexes' | 'enrichments'>;
    return {
      ...table,
      ranges: rangesOf.all(table.tableId) as RangeRecord[],
      indexes: indexesOf.all(table.tableId) as IndexRecord[],
      enrichments: enrichments(table.tableId),
    };
  };
  const range = (rangeId: RangeId) => (rangeById.get(rangeId) as RangeRecord | null) ?? undefined;
  return {
    tables: (): TableRecord[] => tableRows.all().flatMap((row) => complete(row) ?? []),
    table: (name: string): TableRecord | undefined => complete(tableByName.get(name)),
    tableById: (tableId: number): TableRecord | undefined => complete(tableById.get(tableId)),
    definition: (tableId: number): TableDefinition | undefined => {
      const table = complete(tableById.get(tableId));
      if (!table) return undefined;
      using last = database.prepare('SELECT last_part_id AS lastPartId FROM tables WHERE id = ?');
      return { table, ...(last.get(tableId) as { lastPartId: number }), enrichments: table.enrichments };
    },
    range,
    ranges: (): RangeRecord[] => rangeRows.all() as RangeRecord[],
    indexesOf: (tableId: number): IndexRecord[] => indexesOf.all(tableId) as IndexRecord[],
    incarnations: (): Pick<IndexRecord, 'tableId' | 'incarnation'>[] => {
      using rows = database.prepare('SELECT table_id AS tableId, incarnation FROM indexes');
      return rows.all() as Pick<IndexRecord, 'tableId' | 'incarnation'>[];
    },
    enrichmentsOf: enrichments,
    /** Whether an index or an enrichment of the range's table has this part, or a later index may find its vectors there. */
    hasPart: (rangeId: RangeId, partId: number): boolean => {
      const record = range(rangeId);
      if (!record) return false;
      const indexes = indexesOf.all(record.tableId) as IndexRecord[];
      if (indexes.some((index) => index.partId === partId)) return true;
      using kept = database.prepare('SELECT part_id FROM kept_parts WHERE table_id = ? AND part_id = ?');
      if (kept.get(record.tableId, partId) !== null) return true;
      using made = database.prepare('SELECT part_id FROM enrichments WHERE table_id = ? AND part_id = ?');
      return made.get(record.tableId, partId) !== null;
    },
    rangeFacts: (): RangeFactsRecord[] => {
      using rows = database.prepare('SELECT range_id AS rangeId, stamp, facts FROM range_facts');
      return rows.all() as RangeFactsRecord[];
    },
    /** The last sequence that the range is known to have acknowledged; undefined before the first. */
    acknowledgedHead: (rangeId: RangeId): number | undefined => {
      using row = database.prepare('SELECT head FROM range_heads WHERE range_id = ?');
      return (row.get(rangeId) as { head: number } | null)?.head;
    },
    counter: (name: string): number => (counterRow.get(name) as { value: number } | null)?.value ?? 0,
    finalize: (): void => {
      finalizeEnrichments();
      for (const statement of [
        tableRows,
        tableByName,
        tableById,
        rangesOf,
        rangeById,
        rangeRows,
        indexesOf,
        counterRow,
      ]) {
        statement.finalize();
      }
    },
  };
}

export type CatalogQueries = ReturnType<typeof catalogQueries>;
