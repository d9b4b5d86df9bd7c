import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assetBody, readAsset } from '../../../src/lib/parts/asset-part.ts';
import { chunkSetBody, chunksMax, readChunkSet } from '../../../src/lib/parts/chunk-set-part.ts';
import { denseBody } from '../../../src/lib/parts/dense-part.ts';
import { denseSetBody, readDenseSet } from '../../../src/lib/parts/dense-set-part.ts';
import {
  compareEdges,
  type Edge,
  edgesBody,
  edgesMax,
  readEdges,
  typeBytesMax,
} from '../../../src/lib/parts/edges-part.ts';
import { isPartDelete, partDeleteBody, partIdOfBody, sourceHashOf } from '../../../src/lib/parts/part-body.ts';
import { sparseBody } from '../../../src/lib/parts/sparse-part.ts';
import { readSparseSet, readSparseSpans, sparseSetBody } from '../../../src/lib/parts/sparse-set-part.ts';
import { setMax } from '../../../src/lib/parts/text-span.ts';
import { readDense, readSparse } from '../../support/vectors/vector-part.ts';

/** One body of each form; `native/base/tests/part_bodies.rs` reads the same file. */
const fixture = join(import.meta.dir, '../../fixtures/part-bodies.txt');
const kept = new Map(
  readFileSync(fixture, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ') as [string, string]),
);

const sourceHash = Uint8Array.from({ length: 16 }, (_, at) => at);
const vector = Float32Array.of(1.5, -2);
const sparse = { indices: Uint32Array.of(3, 9), values: Float32Array.of(0.5, 0.25) };
const set = [
  { start: 0, end: 9, hash: sourceHash, vector },
  { start: 10, end: 19, hash: sourceHash.toReversed(), vector: Float32Array.of(3, 4) },
];
const sparseSet = [
  { start: 0, end: 9, hash: sourceHash, vector: sparse },
  {
    start: 10,
    end: 19,
    hash: sourceHash.toReversed(),
    vector: { indices: new Uint32Array(0), values: new Float32Array(0) },
  },
];
const edge: Edge = {
  type: 'likes',
  target: 'café',
  origin: 'declared',
  weight: 0.5,
  createdMs: 1_700_000_000_000,
  updatedMs: 1_700_000_000_001,
  since: 0,
  metadata: '{"note":"é"}',
};
const edges: Edge[] = [{ ...edge, origin: 'derived', metadata: '' }, { ...edge, type: 'knows', target: 'z' }, edge];
const chunks = [
  { start: 0, end: 4, text: 'tea ' },
  { start: 4, end: 9, text: 'café' },
];
const asset = { mediaType: 'text/plain', value: new TextEncoder().encode('amber') };

const bodies: Record<string, Uint8Array> = {
  deleted: partDeleteBody(7),
  dense: denseBody(7, vector),
  dense_with_hash: denseBody(7, vector, sourceHash),
  sparse: sparseBody(7, sparse),
  dense_set: denseSetBody(7, set),
  edges: edgesBody(7, edges),
  chunk_set: chunkSetBody(7, chunks),
  asset: assetBody(7, asset),
  asset_truncated: assetBody(7, { ...asset, truncated: true }),
  sparse_set: sparseSetBody(7, sparseSet),
};

describe('the body of a part', () => {
  test('is written as the engine reads it', () => {
    const written = Object.entries(bodies).map(([name, body]): [string, string] => [
      name,
      Buffer.from(body).toString('hex'),
    ]);
    expect(Object.fromEntries(written)).toEqual(Object.fromEntries(kept));
  });

  test('gives back what was written, whatever its form', () => {
    const body = (name: string) => bodies[name] ?? new Uint8Array(0);
    expect(readDense(body('dense'))).toEqual(vector);
    expect(readDense(body('dense_with_hash'))).toEqual(vector);
    expect(readSparse(body('sparse'))).toEqual(sparse);
    expect(readDenseSet(body('dense_set'))).toEqual(set);
    expect(readSparseSet(body('sparse_set'))).toEqual(sparseSet);
    expect(readSparseSpans(body('sparse_set'))).toEqual(sparseSet.map(({ vector: _, ...span }) => span));
    expect(readEdges(body('edges'))).toEqual([...edges].sort(compareEdges));
    expect(readEdges(body('edges')).map(({ type, origin }) => [type, origin])).toEqual([
      ['knows', 'declared'],
      ['likes', 'declared'],
      ['likes', 'derived'],
    ]);
    expect(readChunkSet(body('chunk_set'))).toEqual(chunks);
    expect(readAsset(body('asset'))).toEqual(asset);
    expect(readAsset(body('asset_truncated'))).toEqual({ ...asset, truncated: true });
  });

  test('of edges keeps every kind of text, and times and sequences of any size', () => {
    const texts = ['a', 'ab', 'b', 'é', 'éa', '🙂', 'x'.repeat(64), 'x'.repeat(65), `${'x'.repeat(65)}é`];
    const times = [-1, 0, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
    const all = texts.flatMap((type) =>
      texts.flatMap((target, at) => {
        const createdMs = times[at % times.length] ?? 0;
        return { ...edge, type, target, createdMs, since: Math.max(0, createdMs), metadata: `{"note":"${target}"}` };
      }),
    );
    expect(readEdges(edgesBody(7, all.toReversed()))).toEqual(all.sort(compareEdges));
  });

  test('names its part and what it was made from', () => {
    for (const body of Object.values(bodies)) expect(partIdOfBody(body)).toBe(7);
    expect(sourceHashOf(bodies.dense_with_hash ?? new Uint8Array(0))).toEqual(sourceHash);
    expect(sourceHashOf(bodies.dense ?? new Uint8Array(0))).toBeUndefined();
    expect(Object.values(bodies).filter(isPartDelete)).toEqual([partDeleteBody(7)]);
  });

  test('is refused when it is cut short', () => {
    const readers = { dense_set: readDenseSet, sparse_set: readSparseSet, edges: readEdges, chunk_set: readChunkSet };
    for (const [name, read] of Object.entries(readers)) {
      const body = bodies[name] ?? new Uint8Array(0);
      for (let length = 8; length < body.byteLength; length += 1) {
        expect(() => read(body.subarray(0, length))).toThrow();
      }
      expect(() => read(Buffer.concat([body, Uint8Array.of(0)]))).toThrow();
    }
    expect(() => readAsset(bodies.asset?.subarray(0, 20) ?? new Uint8Array(0))).toThrow();
  });

  test('has bounds', () => {
    expect(() => denseSetBody(7, [])).toThrow('out of bounds');
    expect(() => sparseSetBody(7, [])).toThrow('out of bounds');
    expect(() => sparseSetBody(7, Array(setMax + 1).fill(sparseSet[0]))).toThrow('out of bounds');
    expect(() => denseSetBody(7, Array(setMax + 1).fill(set[0]))).toThrow('out of bounds');
    expect(() => denseSetBody(7, [...set, { start: 0, end: 1, hash: sourceHash, vector: Float32Array.of(1) }])).toThrow(
      'dimensions',
    );
    expect(() => chunkSetBody(7, Array(chunksMax + 1).fill(chunks[0]))).toThrow('out of bounds');
    expect(() => edgesBody(7, [edge, edge])).toThrow('twice');
    expect(() => edgesBody(7, [{ ...edge, weight: 1e39 }])).toThrow('weight');
    expect(() => edgesBody(7, [{ ...edge, type: 'x'.repeat(typeBytesMax + 1) }])).toThrow('type');
    expect(() => edgesBody(7, Array(edgesMax + 1).fill(edge))).toThrow('out of bounds');
  });
});
