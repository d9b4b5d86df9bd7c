import { type Database, SQLiteError } from 'bun:sqlite';
import { statSync } from 'node:fs';
import { openReader, schemaVersion } from '../connection.ts';
import type { DataDirectory } from '../directory/data-directory.ts';
import { StoredBodies } from '../packing/stored-bodies.ts';
import { newRangeFileBytes } from '../range/new-range-file.ts';
import { placeOfPart } from '../range/part-rows.ts';
import { rangeMigrations } from '../range/range-migrations.ts';
import { inspectWal } from '../wal/wal-inspection.ts';
import type { RangeId } from '../write-request.ts';

type RangeProblem =
  | 'unreadable'
  | 'newer_format'
  | 'log'
  | 'structure'
  | 'dictionary'
  | 'document'
  | 'part'
  | 'feed'
  | 'counters';

/** Something wrong with a range file. */
interface RangeFinding {
  problem: RangeProblem;
  message: string;
  /** The document concerned, where it is one. */
  key?: string;
}

interface RangeCheck {
  findings: RangeFinding[];
  documents: number;
  /** Last committed sequence; 0 when the file cannot be read. */
  head: number;
  /** The feed was purged up to this sequence, because every index had it in a checkpoint; 0 before the first purge. */
  purgedThrough: number;
  /** No server of this release has opened the range yet. */
  isEarlier: boolean;
}

/** Key interval that the catalog gives the range: start inclusive, end exclusive, null for none. */
export interface RangeBounds {
  startKey: string;
  endKey: string | null;
}

/** Steps of the schema: vectors, their name as parts of documents, and packed bodies. */
const vectorsVersion = 2;
const partsVersion = 4;
const packingVersion = 6;

/** The names, in the schema of a file, of the table of vectors and of the column of the feed that names their index. */
interface PartNames {
  table: string;
  id: string;
}
/** After this many findings in one file the rest adds nothing. */
const findingsMax = 1_000;

const keyDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Checks one range's `documents.db` while nobody has it open: the log, SQLite's own structure, every document's
 * checksum, JSON and key, every part's checksum, the change feed against both, and the counters against a recount.
 * Changes no data.
 */
export function checkRangeFile(path: string, bounds: RangeBounds = { startKey: '', endKey: null }): RangeCheck {
  const findings: RangeFinding[] = [];
  const log = inspectWal(`${path}-wal`);
  if (log.state === 'damaged') {
    findings.push({
      problem: 'log',
      message: `the write-ahead log is damaged at byte ${log.damagedAtByte}, in front of committed transactions`,
    });
    return unread(findings);
  }
  let database: Database | undefined;
  try {
    database = openReader(path);
    return check(database, bounds, findings);
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    findings.push({ problem: 'unreadable', message: `${error.code ?? 'SQLite'}: ${error.message}` });
    return unread(findings);
  } finally {
    database?.close();
  }
}

/**
 * Whether a range's file, of whatever generation, holds more than an empty range. One that cannot be read does when it is
 * larger than a new file, or has a log: a crash while a range was made leaves less.
 */
export function holdsChanges(directory: DataDirectory, rangeId: RangeId): boolean {
  const files = new Bun.Glob('*/documents.db').scanSync({ cwd: directory.rangeDirectory(rangeId), absolute: true });
  for (const path of files) {
    try {
      using database = openReader(path);
      if (database.query('SELECT 1 FROM changes LIMIT 1').get() !== null) return true;
    } catch (error) {
      if (!(error instanceof SQLiteError)) throw error;
      if (statSync(path).size > newRangeFileBytes() || inspectWal(`${path}-wal`).state !== 'empty') return true;
    }
  }
  return false;
}

/** The result for a file that cannot be read. */
function unread(findings: RangeFinding[]): RangeCheck {
  return { findings, documents: 0, head: 0, purgedThrough: 0, isEarlier: false };
}

function check(database: Database, bounds: RangeBounds, findings: RangeFinding[]): RangeCheck {
  const version = schemaVersion(database);
  if (version > rangeMigrations.length) {
    const message = 'the file was written by a later release: start that release, or a later one';
    findings.push({ problem: 'newer_format', message });
    return unread(findings);
  }
  for (const { integrity_check: line } of database.query('PRAGMA integrity_check').all() as {
    integrity_check: string;
  }[]) {
    if (line !== 'ok') findings.push({ problem: 'structure', message: line });
  }
  const bodies = version >= packingVersion ? new StoredBodies(database) : undefined;
  if (bodies) checkDictionaries(database, bodies, findings);
  const recount = checkDocuments(database, bodies, bounds, findings);
  bodies?.close();
  // A file that no server of this release has opened yet has no vectors.
  const earlier = version >= vectorsVersion ? { table: 'vectors', id: 'index_id' } : undefined;
  const names = version >= partsVersion ? { table: 'parts', id: 'part_id' } : earlier;
  if (names) recount.bytes += checkParts(database, names, findings);
  const head = checkFeed(database, names, findings);
  checkCounters(database, recount, findings);
  const identity = database.query('SELECT purged_through AS purgedThrough FROM range_identity').get();
  const { purgedThrough = 0 } = (identity ?? {}) as { purgedThrough?: number };
  const isEarlier = version < rangeMigrations.length;
  return { findings: findings.slice(0, findingsMax), documents: recount.documents, head, purgedThrough, isEarlier };
}

interface Recount {
  documents: number;
  bytes: number;
  ordinalMax: number;
}

function checkDictionaries(database: Database, bodies: StoredBodies, findings: RangeFinding[]): void {
  for (const { id } of database.query('SELECT id FROM dictionaries').all() as { id: number }[]) {
    if (bodies.dictionary(id)) continue;
    const message = `the dictionary ${id} of compressed documents is damaged`;
    findings.push({ problem: 'dictionary', message });
  }
}

interface CheckedRow {
  ordinal: number;
  key: Uint8Array;
  crc: number;
  rawBytes: number | null;
  body: Uint8Array<ArrayBuffer>;
}

/** `bodies`: undefined for a file in which none is packed yet. */
function checkDocuments(
  database: Database,
  bodies: StoredBodies | undefined,
  bounds: RangeBounds,
  findings: RangeFinding[],
): Recount {
  const start = Buffer.from(bounds.startKey);
  const end = bounds.endKey === null ? undefined : Buffer.from(bounds.endKey);
  const recount: Recount = { documents: 0, bytes: 0, ordinalMax: 0 };
  const columns = `ordinal, key, crc, ${bodies ? 'raw_bytes' : 'NULL'} AS rawBytes, body`;
  for (const found of database.query(`SELECT ${columns} FROM documents ORDER BY ordinal`).iterate()) {
    const row = found as CheckedRow;
    recount.documents += 1;
    recount.bytes += row.rawBytes ?? row.body.byteLength;
    if (bodies) row.body = bodies.unpacked(row);
    recount.ordinalMax = row.ordinal;
    const fault = faultOf(row) ?? placeFault(row.key, start, end);
    if (fault !== undefined && findings.length < findingsMax) {
      const key = Buffer.from(row.key).toString();
      findings.push({ problem: 'document', key, message: `the document "${key}" ${fault}` });
    }
  }
  return recount;
}

function faultOf({ key, crc, body }: { key: Uint8Array; crc: number; body: Uint8Array }): string | undefined {
  if (Bun.hash.crc32(body) !== crc) return 'does not match its checksum';
  const text = decoded(body);
  if (text === undefined || !isObject(text)) return 'is not a JSON object';
  return decoded(key) === undefined || key.byteLength === 0 ? 'has a key that is not UTF-8' : undefined;
}

function placeFault(key: Uint8Array, start: Uint8Array, end: Uint8Array | undefined): string | undefined {
  const inside = Buffer.compare(key, start) >= 0 && (end === undefined || Buffer.compare(key, end) < 0);
  return inside ? undefined : 'lies outside the keys of its range';
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return keyDecoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Returns the bytes of all parts. */
function checkParts(database: Database, { table }: PartNames, findings: RangeFinding[]): number {
  let bytes = 0;
  const rows = database
    .query(
      `SELECT v.id, v.crc, v.body, d.key FROM ${table} v LEFT JOIN documents d ON d.ordinal = v.id & 4294967295 ORDER BY v.id`,
    )
    .iterate();
  for (const found of rows) {
    const { id, crc, body, key } = found as { id: number; crc: number; body: Uint8Array; key: Uint8Array | null };
    bytes += body.byteLength;
    const { partId, ordinal } = placeOfPart(id);
    const report = (fault: string) => {
      if (findings.length >= findingsMax) return;
      const name = key === null ? `ordinal ${ordinal}` : `"${Buffer.from(key).toString()}"`;
      const message = `part ${partId} of ${name} ${fault}`;
      findings.push({ problem: 'part', message, ...(key === null ? {} : { key: Buffer.from(key).toString() }) });
    };
    if (key === null) report('has lost its document');
    if (Bun.hash.crc32(body) !== crc) report('does not match its checksum');
  }
  return bytes;
}

/** Returns the head. */
function checkFeed(database: Database, names: PartNames | undefined, findings: RangeFinding[]): number {
  const ofDocuments = names ? `AND c.${names.id} IS NULL` : '';
  const count = (sql: string) => (database.query(sql).get() as { n: number }).n;
  const report = (n: number, what: string) => {
    if (n > 0) findings.push({ problem: 'feed', message: `${n} ${what}` });
  };
  report(
    count(
      'SELECT count(*) AS n FROM documents d LEFT JOIN changes c ON c.sequence = d.sequence AND c.deleted = 0 ' +
        `AND c.ordinal = d.ordinal ${ofDocuments} WHERE c.sequence IS NULL`,
    ),
    'documents are missing from the change feed',
  );
  report(
    count('SELECT count(*) - count(DISTINCT sequence) AS n FROM documents'),
    'documents share a sequence with another',
  );
  report(
    count(
      `SELECT count(*) AS n FROM changes c JOIN documents d ON d.ordinal = c.ordinal WHERE c.deleted = 1 ${ofDocuments}`,
    ),
    'tombstones name documents that exist',
  );
  if (names) {
    report(
      count(
        `SELECT count(*) AS n FROM ${names.table} v LEFT JOIN changes c ON c.sequence = v.sequence AND c.deleted = 0 ` +
          `AND c.${names.id} * 4294967296 + c.ordinal = v.id WHERE c.sequence IS NULL`,
      ),
      'parts of documents are missing from the change feed',
    );
  }
  report(
    count('SELECT count(*) AS n FROM changes WHERE sequence < (SELECT first_sequence FROM range_identity)'),
    'changes are older than the range',
  );
  return count('SELECT coalesce(max(sequence), (SELECT first_sequence - 1 FROM range_identity)) AS n FROM changes');
}

function checkCounters(database: Database, recount: Recount, findings: RangeFinding[]): void {
  const last = database
    .query('SELECT documents, bytes, next_ordinal AS nextOrdinal FROM changes ORDER BY sequence DESC LIMIT 1')
    .get() as { documents: number | null; bytes: number | null; nextOrdinal: number | null } | null;
  const { documents, bytes, nextOrdinal } = last ?? { documents: 0, bytes: 0, nextOrdinal: 1 };
  if (documents !== recount.documents || bytes !== recount.bytes) {
    findings.push({
      problem: 'counters',
      message: `the counters say ${documents} documents and ${bytes} bytes; there are ${recount.documents} and ${recount.bytes}`,
    });
  }
  if (nextOrdinal === null || nextOrdinal <= recount.ordinalMax) {
    findings.push({ problem: 'counters', message: `the next ordinal ${nextOrdinal} has been given already` });
  }
}
