import { describe, expect, test } from 'bun:test';
import { scanJson } from '../../../src/engine/json-scan.ts';
import { TableSchema } from '../../../src/engine/table-schema.ts';
import { renderVector } from '../../../src/engine/vector-text.ts';
import {
  buildFrame,
  entryWords,
  type FrameOptions,
  holdsVectors,
  scanWrite,
  sectionEntries,
} from '../../../src/engine/write-frame.ts';
import type { WrittenVectors } from '../../../src/index-kinds/index-kind.ts';
import { AssertionError } from '../../../src/lib/assert.ts';
import { readFrame, rowKind } from '../../../src/lib/document-frame.ts';
import { readEdges } from '../../../src/lib/parts/edges-part.ts';
import { partIdOfBody } from '../../../src/lib/parts/part-body.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { threadMs } from '../../support/thread-time.ts';
import { readVector } from '../../support/vectors/vector-part.ts';

const options: FrameOptions = { timestampMs: 1_777_863_721_500 };
const bytesOf = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function frameOf(value: unknown, schema?: TableSchema, vectorIndexes?: WrittenVectors[]) {
  const bytes = bytesOf(value);
  const scanned = await scanWrite(bytes, 'batch');
  const entries = sectionEntries(scanned, 0);
  expect(holdsVectors(entries)).toBe(vectorIndexes !== undefined);
  return readFrame(await buildFrame(bytes, entries, { ...options, ...(vectorIndexes && { vectorIndexes }) }, schema));
}

async function refusal(work: () => unknown): Promise<ServiceError> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    return error as ServiceError;
  }
  throw new Error('nothing was thrown');
}

describe('the native boundary', () => {
  test('a fault of ours is an assertion, not an answer', async () => {
    const bytes = bytesOf('{}');
    const outside = new Uint32Array([0, 1, 0, 1, 50, 10, 0, 0, 0]);
    await expect(buildFrame(bytes, outside, options)).rejects.toBeInstanceOf(AssertionError);
    await expect(buildFrame(bytes, new Uint32Array(3), options)).rejects.toBeInstanceOf(AssertionError);
  });
});

describe('scanWrite and buildFrame', () => {
  test('a batch becomes a frame', async () => {
    const frame = await frameOf({
      transforms: [{ key: 't', operations: [{ op: '$inc', path: 'n', value: 1 }] }],
      deletes: ['d'],
      inserts: { 'k/"é"': { a: 1 } },
    });
    const rows = Array.from({ length: frame.rowCount }, (_, row) => [
      frame.kind(row),
      frame.key(row),
      textOf(frame.body(row)),
    ]);
    expect(rows).toEqual([
      [rowKind.put, 'k/"é"', '{"a":1}'],
      [rowKind.delete, 'd', ''],
      [rowKind.transform, 't', '{"operations":[{"op":"$inc","path":"n","value":1}],"upsert":false}'],
    ]);
    for (let row = 0; row < frame.rowCount; row += 1) {
      expect(frame.crc(row)).toBe(Bun.hash.crc32(frame.body(row)));
      expect([frame.ordinal(row), frame.sequence(row), frame.flags(row), frame.ttlBaseMs(row)]).toEqual([0, 0, 0, 0]);
      expect(frame.writtenMs(row)).toBe(frame.kind(row) === rowKind.put ? options.timestampMs : 0);
    }
  });

  test('the entries of one section are found without the others', () => {
    const sections = Array.from({ length: 20_000 }, (_, at) => `t${at}`);
    const entries = new Uint32Array(2 * sections.length * entryWords);
    // Every third section is empty, and its entries are those of the one before.
    const sectionOf = (entry: number) => (entry >> 1) - ((entry >> 1) % 3 === 2 ? 1 : 0);
    for (let at = 0; at < entries.length; at += entryWords) entries[at] = sectionOf(at / entryWords);
    const scanned = { envelopeJson: '{}', sections, entries };
    const before = threadMs();
    const counts = sections.map((_, at) => sectionEntries(scanned, at).length / entryWords);
    expect(threadMs() - before).toBeLessThan(200);
    expect(counts.slice(0, 6)).toEqual([2, 4, 0, 2, 4, 0]);
    expect(counts.reduce((sum, count) => sum + count)).toBe(2 * sections.length);
  });

  test('large bodies give the same as small ones', async () => {
    const inserts = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, { text: `text ${i}`, i }]));
    const frame = await frameOf({ inserts });
    expect(frame.rowCount).toBe(2_000);
    const small = await frameOf({ inserts: { k1234: inserts.k1234 } });
    expect(frame.body(1_234)).toEqual(small.body(0));
    expect(frame.crc(1_234)).toBe(small.crc(0));
    expect((await refusal(() => frameOf({ inserts, deletes: ['k7'] }))).code).toBe('conflicting_operations');
  });

  test('vectors become rows behind their document, in a frame of any size', async () => {
    const indexes: WrittenVectors[] = [
      { name: 'taste', id: 3, kind: 'dense', dimension: 64, metric: 'cosine' },
      { name: 'tags', id: 4, kind: 'sparse' },
    ];
    const ones = new Float32Array(64).fill(1);
    const tags = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [index, 1]));
    const document = (taste: unknown) => ({ n: 1, _embeddings: { taste, tags } });
    const base64 = Buffer.from(ones.buffer).toString('base64');
    for (const [count, taste] of [
      [1, [...ones]],
      [1, base64],
      [500, [...ones]],
      [500, base64],
    ] as const) {
      const inserts = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, document(taste)]));
      const frame = await frameOf({ inserts, deletes: ['d'] }, undefined, indexes);
      expect(frame.rowCount).toBe(3 * count + 1);
      const last = 3 * count - 3;
      expect([0, 1, 2, 3].map((row) => frame.kind(last + row))).toEqual([1, 4, 4, 2]);
      expect(textOf(frame.body(last))).toBe('{"n":1}');
      expect([0, 1, 2].map((row) => frame.key(last + row))).toEqual(Array(3).fill(`k${count - 1}`));
      expect(partIdOfBody(frame.body(last + 1))).toBe(3);
      expect(readVector(frame.body(last + 1))).toEqual({ dense: ones });
      expect(readVector(frame.body(last + 2))).toEqual({
        indices: Uint32Array.from({ length: 40 }, (_, index) => index),
        values: new Float32Array(40).fill(1),
      });
      expect(JSON.parse(renderVector(frame.body(last + 1)))).toEqual([...ones]);
    }
  });

  test.each([
    [
      'many edges of each document',
      20,
      300,
      { to: Array.from({ length: 60 }, (_, at) => String.fromCharCode(65 + at)) },
    ],
    ['few edges of documents that are large together', 1, 20_000, { to: 'k1', text: 'x'.repeat(3_000) }],
  ])('edges of fields become rows, in a frame with little room beside: %s', async (_, types, documents, document) => {
    const rules = { field: 'to', min_weight: 0, allow_self_loops: true, required_metadata: [], is_tree: false };
    const edge_types = Array.from({ length: types }, (_, at) => ({ ...rules, name: `a_type_of_edges_${at}` }));
    const edgeRules = JSON.stringify({ edge_types, max_edges_per_document: 0 });
    const inserts = Object.fromEntries(Array.from({ length: documents }, (_, at) => [`k${at}`, document]));
    const bytes = bytesOf({ inserts });
    const entries = sectionEntries(await scanWrite(bytes, 'batch'), 0);
    const vectorIndexes: WrittenVectors[] = [{ name: 'roads', id: 7, kind: 'graph', edgeRules }];
    const built = await buildFrame(bytes, entries, { ...options, vectorIndexes });
    const frame = readFrame(built);
    expect(frame.rowCount).toBe(2 * documents);
    expect([frame.kind(0), frame.kind(1)]).toEqual([rowKind.put, rowKind.partPut]);
    const edges = readEdges(frame.body(2 * documents - 1));
    expect(edges).toHaveLength(types * [document.to].flat().length);
    expect(built.buffer.byteLength).toBeLessThan(1.5 * built.byteLength);
  });

  test('tables are sections', async () => {
    const bytes = bytesOf({
      tables: { a: { inserts: { x: {} } }, b: {}, c: { deletes: ['y', 'z'] } },
      sync_level: 'write',
    });
    const scanned = await scanWrite(bytes, 'tables');
    expect(scanned.sections).toEqual(['a', 'b', 'c']);
    expect(JSON.parse(scanned.envelopeJson)).toEqual({ tables: { a: {}, b: {}, c: {} }, sync_level: 'write' });
    const counts = [0, 1, 2].map((section) => sectionEntries(scanned, section).length / entryWords);
    expect(counts).toEqual([1, 0, 2]);
    const frame = readFrame(await buildFrame(bytes, sectionEntries(scanned, 2), options));
    expect([frame.key(0), frame.key(1)]).toEqual(['y', 'z']);
  });

  test('errors are answers with codes', async () => {
    const batch = (text: string) => () => frameOf(text);
    const rows: [() => unknown, string][] = [
      [batch('{"inserts":'), 'invalid_json'],
      [batch('{"inserts":{"k":{"a":1,"a":1}}}'), 'invalid_json'],
      [batch(`{"inserts":{"k":${'{"a":'.repeat(65)}1${'}'.repeat(65)}}}`), 'json_too_deep'],
      [batch('{"inserts":{"k":{"a":9007199254740993}}}'), 'number_out_of_range'],
      [batch('{"inserts":{"k":1}}'), 'invalid_request'],
      [batch('{"inserts":{"":{}}}'), 'invalid_key'],
      [batch('{"inserts":{"a":{}},"deletes":["a"]}'), 'conflicting_operations'],
      [batch('{"inserts":{"a":{"_timestamp":"soon"}}}'), 'validation_failed'],
      [batch('{"inserts":{"a":{"_edges":{"g":{}}}}}'), 'invalid_edge'],
      [() => frameOf('{"inserts":{"a":{"_embeddings":{"v":[1]}}}}', undefined, []), 'invalid_embedding'],
      [() => scanJson(bytesOf('[1,]')), 'invalid_json'],
      [() => scanJson(bytesOf('[[1]]'), { depthMax: 1 }), 'json_too_deep'],
      [() => scanWrite(bytesOf({ deletes: ['a', 'b'] }), 'batch', { keysMax: 1 }), 'limit_exceeded'],
      [() => TableSchema.compile({ default_type: 'x' }), 'invalid_schema'],
    ];
    for (const [work, code] of rows) expect((await refusal(work)).code as string).toBe(code);
  });

  test('documents are validated against a schema that is open', async () => {
    const schema = await TableSchema.compile({
      enforce_types: true,
      document_schemas: { note: { schema: { properties: { n: { type: 'integer' } } } } },
    });
    expect((await frameOf({ inserts: { k: { n: 1 } } }, schema)).rowCount).toBe(1);
    expect((await refusal(() => frameOf({ inserts: { k: { n: 'x' } } }, schema))).message).toContain(
      'document "k" at /n',
    );
    schema.close();
    schema.close();
    await expect(frameOf({ inserts: {} }, schema)).rejects.toThrow('after it was closed');
  });

  test('equal schemas are compiled once, and held until the last of them is closed', async () => {
    const wire = { enforce_types: true, document_schemas: { once: { schema: { required: ['n'] } } } };
    const [first, second] = await Promise.all([TableSchema.compile(wire), TableSchema.compile(structuredClone(wire))]);
    const other = await TableSchema.compile({ ...wire, enforce_types: false });
    expect(second.handle).toBe(first.handle);
    expect(other.handle).not.toBe(first.handle);
    first.close();
    expect((await refusal(() => frameOf({ inserts: { k: {} } }, second))).message).toContain('document "k"');
    second.close();
    using again = await TableSchema.compile(wire);
    expect((await refusal(() => frameOf({ inserts: { k: {} } }, again))).message).toContain('document "k"');
    other.close();
  });

  test('a frame can be transferred to a worker', async () => {
    const frame = await frameOf({ inserts: { k: { text: 'across' } } });
    const moved = structuredClone(frame.bytes, { transfer: [frame.bytes.buffer] });
    expect(frame.bytes.byteLength).toBe(0);
    expect(textOf(readFrame(moved).body(0))).toStartWith('{"text":"across"');
  });
});
