import { existsSync, statSync } from 'node:fs';
import { catalogMigrations } from '../catalog/catalog-migrations.ts';
import { catalogQueries } from '../catalog/catalog-queries.ts';
import type { RangeRecord, TableRecord } from '../catalog/catalog-records.ts';
import { openReader, schemaVersion } from '../connection.ts';
import type { DataDirectory } from '../directory/data-directory.ts';
import { inspectWal } from '../wal/wal-inspection.ts';
import type { RangeId } from '../write-request.ts';
import { decodeRedo } from '../writer/redo-record.ts';

interface CatalogCheck {
  findings: string[];
  /** Empty when the catalog cannot be read. */
  tables: TableRecord[];
  /** The last sequence that each range is known to have acknowledged. */
  acknowledgedHeads: ReadonlyMap<RangeId, number>;
  /** The repairs that the next start will do by itself. */
  notes: string[];
}

/** The step of the schema that brings acknowledged heads. */
const headsVersion = 3;

/**
 * Verifies `catalog.db` of a directory that no process holds: SQLite's own checks, the records, and that the ranges of
 * every table cover the key space without gaps and have their files. Changes nothing.
 */
export function checkCatalog(directory: DataDirectory): CatalogCheck {
  const result: CatalogCheck = { findings: [], tables: [], acknowledgedHeads: new Map(), notes: [] };
  const { findings } = result;
  const path = directory.catalogFile;
  if (!existsSync(path)) {
    findings.push('there is no catalog');
    return result;
  }
  const wal = inspectWal(`${path}-wal`);
  if (wal.state === 'damaged') findings.push(`the catalog's write-ahead log is damaged at byte ${wal.damagedAtByte}`);
  try {
    readCatalog(path, result);
  } catch (error) {
    findings.push(`the catalog cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  for (const table of result.tables) findings.push(...checkTable(table, directory));
  findings.push(...sharedRanges(result.tables));
  return result;
}

function readCatalog(path: string, result: CatalogCheck): void {
  const { findings, tables, notes } = result;
  const database = openReader(path);
  try {
    const version = schemaVersion(database);
    const known = catalogMigrations.length;
    if (version > known) findings.push(`the catalog has format ${version}; this release knows formats up to ${known}`);
    if (version < known) notes.push(`the next start takes the catalog from format ${version} to ${known}`);
    const integrity = database.query('PRAGMA integrity_check(20)').all() as { integrity_check: string }[];
    for (const { integrity_check: line } of integrity) if (line !== 'ok') findings.push(`the catalog: ${line}`);
    if (database.query('PRAGMA foreign_key_check').all().length > 0) {
      findings.push('the catalog has ranges or indexes of tables that it does not have');
    }
    const reading = catalogQueries(database);
    tables.push(...reading.tables());
    reading.finalize();
    const redo = database.query('SELECT payload FROM redo').all() as { payload: Uint8Array<ArrayBuffer> }[];
    for (const { payload } of redo) decodeRedo(payload);
    if (redo.length > 0) notes.push(`the next start finishes ${redo.length} committed writes over several ranges`);
    if (version >= headsVersion) {
      const heads = database.query('SELECT range_id AS rangeId, head FROM range_heads').all();
      result.acknowledgedHeads = new Map(
        (heads as { rangeId: number; head: number }[]).map((each) => [each.rangeId, each.head]),
      );
    }
  } finally {
    database.close();
  }
}

function checkTable(table: TableRecord, directory: DataDirectory): string[] {
  const findings: string[] = [];
  const say = (what: string) => findings.push(`table "${table.name}": ${what}`);
  if (!isJson(table.record)) say('its record is not JSON');
  for (const { name, config } of table.indexes) if (!isJson(config)) say(`the record of index "${name}" is not JSON`);
  const ranges = [...table.ranges].sort(byStart);
  if (ranges.length === 0) say('it has no ranges');
  let expected: string | null = '';
  for (const { rangeId, startKey, endKey, generation } of ranges) {
    if (startKey !== expected) say(`range ${rangeId} starts at ${JSON.stringify(startKey)}, not where another ends`);
    expected = endKey;
    if (isEmpty(directory.documentsFile(rangeId, generation))) say(`range ${rangeId} has lost its file`);
  }
  if (expected !== null) say('its last range ends before the end of the key space');
  return findings;
}

/** Missing, or of no length, which SQLite takes for a new file. */
function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

function byStart(left: RangeRecord, right: RangeRecord): number {
  return Buffer.compare(Buffer.from(left.startKey), Buffer.from(right.startKey));
}

function sharedRanges(tables: readonly TableRecord[]): string[] {
  const seen = new Set<number>();
  const findings: string[] = [];
  for (const { rangeId } of tables.flatMap(({ ranges }) => ranges)) {
    if (seen.has(rangeId)) findings.push(`range ${rangeId} belongs to two tables`);
    seen.add(rangeId);
  }
  return findings;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
