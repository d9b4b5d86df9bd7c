import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from './document-file.ts';

/** Vectors in files, which every engine reads: little-endian float32 rows, and what filters ask of each row. */
export interface VectorSet {
  name: string;
  rows: number;
  queries: number;
  dimension: number;
  rowsFile: string;
  queriesFile: string;
  /** For each row two u16 from 0 to 999: `independent` and `correlated`. Absent: the set is not filtered. */
  bucketsFile?: string;
}

/** Rows whose bucket is below `below` are kept, of a thousand buckets. */
export interface VectorFilter {
  field: 'independent' | 'correlated';
  below: number;
}

export const bucketCount = 1_000;

/** The vectors of a generator; rows arrive in order. */
export interface VectorSetContents {
  rows: Iterable<Float32Array>;
  queries: Iterable<Float32Array>;
  /** Asked for when all rows have been drawn. */
  buckets?: () => Uint16Array;
}

/** The set of this name, written when it is missing. */
export function vectorSet(
  description: { name: string; rows: number; queries: number; dimension: number; filtered: boolean },
  contents: () => VectorSetContents,
): VectorSet {
  const { filtered, ...shape } = description;
  const file = (part: string) => join(cacheDirectory, `${shape.name}-${shape.rows}-${part}`);
  const set: VectorSet = { ...shape, rowsFile: file('rows.f32'), queriesFile: file(`${shape.queries}-queries.f32`) };
  if (filtered) set.bucketsFile = file('buckets.u16');
  const files = [set.rowsFile, set.queriesFile, ...(set.bucketsFile ? [set.bucketsFile] : [])];
  if (files.every((path) => existsSync(path))) return set;
  mkdirSync(cacheDirectory, { recursive: true });
  const { rows, queries, buckets } = contents();
  writeVectors(set.rowsFile, rows, set.rows);
  writeVectors(set.queriesFile, queries, set.queries);
  if (set.bucketsFile && buckets) writeFileSync(set.bucketsFile, buckets());
  return set;
}

/** The same rows under another name, asked for other queries, which are written when they are missing. */
export function withQueries(set: VectorSet, name: string, queries: () => Iterable<Float32Array>): VectorSet {
  const queriesFile = join(cacheDirectory, `${name}-${set.rows}-${set.queries}-queries.f32`);
  if (!existsSync(queriesFile)) writeVectors(queriesFile, queries(), set.queries);
  return { ...set, name, queriesFile };
}

/** Rows from `first` on, at most `count`, one after another. */
export function readRows(set: VectorSet, first: number, count: number): Float32Array<ArrayBuffer> {
  const rowBytes = set.dimension * 4;
  const bytes = new Uint8Array(Math.min(count, set.rows - first) * rowBytes);
  const file = openSync(set.rowsFile, 'r');
  for (let at = 0; at < bytes.byteLength; ) {
    const read = readSync(file, bytes, at, bytes.byteLength - at, first * rowBytes + at);
    if (read === 0) throw new Error(`${set.rowsFile} is shorter than ${set.rows} rows: delete bench/.cache`);
    at += read;
  }
  closeSync(file);
  return new Float32Array(bytes.buffer);
}

export function readQueries(set: VectorSet): Float32Array[] {
  const all = new Float32Array(new Uint8Array(readFileSync(set.queriesFile)).buffer);
  return Array.from({ length: set.queries }, (_, at) => all.subarray(at * set.dimension, (at + 1) * set.dimension));
}

/** For each row its two buckets; undefined for a set that is not filtered. */
export function readBuckets(set: VectorSet): Uint16Array | undefined {
  if (set.bucketsFile === undefined) return undefined;
  return new Uint16Array(new Uint8Array(readFileSync(set.bucketsFile)).buffer);
}

function writeVectors(path: string, vectors: Iterable<Float32Array>, count: number): void {
  const unfinished = `${path}.${process.pid}.part`;
  const file = openSync(unfinished, 'w');
  let written = 0;
  for (const vector of vectors) {
    if (written >= count) break;
    writeFileSync(file, vector);
    written += 1;
  }
  closeSync(file);
  if (written < count) throw new Error(`${path}: only ${written} of ${count} vectors`);
  renameSync(unfinished, path);
}
