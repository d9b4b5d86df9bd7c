import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FrameBuilder, rowKind } from '../../src/lib/document-frame.ts';
import { partDeleteBody } from '../../src/lib/parts/part-body.ts';
import type { TableRecord } from '../../src/storage/catalog/catalog-records.ts';
import type { TransformOperation } from '../../src/storage/evaluation/transforms.ts';
import { openStorage, type Storage } from '../../src/storage/open-storage.ts';
import type { AppliedWrite, RangeWrite, WriteRequest } from '../../src/storage/write-request.ts';

export const requestTimeMs = Date.UTC(2026, 0, 2);

/** A directory that is removed at the end of its scope. */
export function temporaryDirectory(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'sundew-storage-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export function openTestStorage(directory: string): Promise<Storage> {
  return openStorage({
    directory,
    clock: systemClock,
    onFatal: (error) => {
      throw error;
    },
  });
}

/** A table of `rangeCount` ranges, cut at "r1", "r2", ...; the first begins at the start of the key space. */
export function createTable(
  storage: Storage,
  name = 'things',
  rangeCount = 1,
  indexNames: readonly string[] = [],
): Promise<TableRecord> {
  const ranges = Array.from({ length: rangeCount }, (_, place) => ({
    startKey: place === 0 ? '' : `r${place}`,
    endKey: place === rangeCount - 1 ? null : `r${place + 1}`,
  }));
  const indexes = indexNames.map((index) => ({ name: index, config: '{}', state: 'extra' }));
  return storage.catalog.createTable({ name, createdMs: requestTimeMs, record: '{}', ranges, indexes });
}

export interface FrameContent {
  puts?: Record<string, unknown>;
  deletes?: readonly string[];
  transforms?: readonly { key: string; operations: TransformOperation[]; upsert?: boolean }[];
  ttlBaseMs?: number;
  /** For puts: key -> index id -> dense vector, or null to delete it. */
  vectors?: Record<string, Record<number, readonly number[] | null>>;
}

/** The body of a dense vector's row, or of its deletion. */
export function vectorBody(indexId: number, vector: readonly number[] | null): Uint8Array {
  if (vector === null) return partDeleteBody(indexId);
  const body = new Uint8Array(8 + 4 * vector.length);
  body.set(partDeleteBody(indexId));
  body[4] = 1;
  body.set(new Uint8Array(Float32Array.from(vector).buffer), 8);
  return body;
}

export function frameOf({
  puts = {},
  deletes = [],
  transforms = [],
  ttlBaseMs = 0,
  vectors = {},
}: FrameContent): Uint8Array<ArrayBuffer> {
  const frame = new FrameBuilder();
  const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  for (const [key, document] of Object.entries(puts)) {
    frame.setTtlBaseMs(frame.append(rowKind.put, key, bytes(document)), ttlBaseMs);
    for (const [indexId, vector] of Object.entries(vectors[key] ?? {})) {
      const kind = vector === null ? rowKind.partDelete : rowKind.partPut;
      frame.append(kind, key, vectorBody(Number(indexId), vector));
    }
  }
  for (const key of deletes) frame.append(rowKind.delete, key, new Uint8Array(0));
  for (const { key, operations, upsert } of transforms) {
    frame.append(rowKind.transform, key, bytes({ operations, upsert: upsert ?? false }));
  }
  return frame.finish();
}

export function group(writes: readonly RangeWrite[], more: Partial<WriteRequest> = {}): WriteRequest {
  return {
    writes,
    requestId: 'request',
    timeMs: requestTimeMs,
    timestamp: new Date(requestTimeMs).toISOString(),
    ...more,
  };
}

export async function write(storage: Storage, rangeId: number, content: FrameContent): Promise<AppliedWrite> {
  const applied = await storage.append(group([{ rangeId, frame: frameOf(content) }]));
  return must(applied[0], 'no answer');
}

/** The error that a promise fails with. */
export async function failure(
  promise: Promise<unknown>,
): Promise<{ code?: string; message: string; details?: unknown }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
}

export function rangeId(table: TableRecord, place = 0): number {
  return must(table.ranges[place], `no range ${place}`).rangeId;
}

/** The parsed document of a key, without its timestamp. */
export function documentOf(body: Uint8Array | undefined): unknown {
  if (body === undefined) return undefined;
  const document = JSON.parse(new TextDecoder().decode(body));
  return document;
}
