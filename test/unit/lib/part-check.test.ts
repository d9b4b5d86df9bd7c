import { expect, test } from 'bun:test';
import { assetBody, readAsset } from '../../../src/lib/parts/asset-part.ts';
import { chunkSetBody, readChunkSet } from '../../../src/lib/parts/chunk-set-part.ts';
import { denseBody } from '../../../src/lib/parts/dense-part.ts';
import { denseSetBody, readDenseSet } from '../../../src/lib/parts/dense-set-part.ts';
import { edgesBody, readEdges } from '../../../src/lib/parts/edges-part.ts';
import { formOfBody, partBody, partDeleteBody, partForm, payloadOf } from '../../../src/lib/parts/part-body.ts';
import { isWholePart } from '../../../src/lib/parts/part-check.ts';
import { sparseBody } from '../../../src/lib/parts/sparse-part.ts';
import { readSparseSet, sparseSetBody } from '../../../src/lib/parts/sparse-set-part.ts';
import { SeededRandom } from '../../support/fault/seeded-random.ts';

const hash = new Uint8Array(16).fill(7);
const span = { start: 0, end: 4, hash };
const vector = Float32Array.of(0.5, -0, 1e-40);
const sparse = { indices: Uint32Array.of(0, 7, 0xffff_ffff), values: vector };
const edge = {
  type: 'to',
  target: 'é',
  origin: 'declared',
  createdMs: 5,
  updatedMs: 6,
  since: 0,
  metadata: '',
} as const;
const edges = [
  { ...edge, weight: 1 },
  { ...edge, target: 'x', weight: 0, since: 9, metadata: '{"a":1}', origin: 'derived' as const },
];

const bodies = [
  denseBody(1, vector),
  denseBody(1, vector, hash),
  sparseBody(1, sparse),
  sparseBody(1, { indices: new Uint32Array(0), values: new Float32Array(0) }),
  denseSetBody(
    1,
    [
      { ...span, vector },
      { ...span, vector },
    ],
    hash,
  ),
  sparseSetBody(1, [
    { ...span, vector: sparse },
    { ...span, vector: sparse },
  ]),
  edgesBody(1, edges, hash),
  edgesBody(1, []),
  chunkSetBody(1, [{ start: 0, end: 2, text: 'é🙂' }], hash),
  chunkSetBody(1, []),
  assetBody(1, { mediaType: 'text/plain', value: Uint8Array.of(0xff) }),
  assetBody(1, { mediaType: 'text/plain', value: Uint8Array.of(0xff), truncated: true }, hash),
];

/** Reads all of a body, as whoever answers a request does. */
function readAll(body: Uint8Array): void {
  const form = formOfBody(body);
  if (form === partForm.dense) new Float32Array(payloadOf(body).buffer);
  if (form === partForm.sparse) new Float32Array(payloadOf(body).buffer, payloadOf(body).byteLength / 2);
  if (form === partForm.denseSet) readDenseSet(body);
  if (form === partForm.sparseSet) readSparseSet(body);
  if (form === partForm.edges) readEdges(body);
  if (form === partForm.chunkSet) readChunkSet(body);
  if (form === partForm.asset) readAsset(body);
}

test('the parts that are written are whole, and what is left of one is so only where it can be read', () => {
  for (const body of bodies) {
    expect(isWholePart(body)).toBe(true);
    for (let end = 0; end < body.byteLength; end += 1) {
      const cut = body.slice(0, end);
      if (isWholePart(cut)) expect(() => readAll(cut)).not.toThrow();
    }
  }
});

test('a part with other bytes is whole only where it can be read', () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  console.log(`seed ${seed}`);
  const random = new SeededRandom(seed);
  let refused = 0;
  for (let round = 0; round < 20_000; round += 1) {
    const body = random.pick(bodies).slice();
    body[random.between(4, body.byteLength - 1)] = random.between(0, 255);
    if (isWholePart(body)) expect(() => readAll(body)).not.toThrow();
    else refused += 1;
  }
  expect(refused).toBeGreaterThan(1_000);
});

/** A list of edges to these keys as they come. */
function edgesPart(targets: readonly string[]): Uint8Array {
  const edge = {
    type: 't',
    origin: 'declared',
    weight: 1,
    createdMs: 1,
    updatedMs: 1,
    since: 0,
    metadata: '',
  } as const;
  const one = targets.map((target) => payloadOf(edgesBody(1, [{ ...edge, target }])).slice(4));
  return partBody(1, partForm.edges, Buffer.concat([Uint8Array.of(targets.length, 0, 0, 0), ...one]));
}

test.each([
  ['no form that a document has', partDeleteBody(1)],
  ['a form of a later release', partBody(1, 99 as never, new Uint8Array(8))],
  ['a head that is cut', bodies[0]?.slice(0, 7)],
  ['a hash that is cut', bodies[1]?.slice(0, 20)],
  ['no dimension', denseBody(1, new Float32Array(0))],
  ['half a number', denseBody(1, vector).slice(0, -2)],
  ['a number that is none', denseBody(1, Float32Array.of(1, Number.NaN))],
  ['a number without an end', denseBody(1, Float32Array.of(Number.POSITIVE_INFINITY))],
  ['an index twice', sparseBody(1, { indices: Uint32Array.of(3, 3), values: Float32Array.of(1, 1) })],
  ['an index without a value', sparseBody(1, sparse).slice(0, -4)],
  ['more edges than it has', partBody(1, partForm.edges, Uint8Array.of(255, 255, 255, 255))],
  ['an edge twice', edgesPart(['b', 'b'])],
  ['edges out of their order', edgesPart(['b', 'a'])],
  ['more behind the last chunk', partBody(1, partForm.chunkSet, new Uint8Array(5))],
  ['a text that is not UTF-8', partBody(1, partForm.asset, Uint8Array.of(1, 0, 0, 0, 0xff))],
])('a part with %s is not whole', (_, body) => {
  expect(body && isWholePart(body)).toBe(false);
});

test('edges in their order are whole', () => {
  expect(isWholePart(edgesPart(['a', 'b']))).toBe(true);
});
