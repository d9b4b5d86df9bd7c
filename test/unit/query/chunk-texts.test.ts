import { expect, test } from 'bun:test';
import { sourceHash } from '../../../src/enrichment/derive-source.ts';
import { denseSetBody } from '../../../src/lib/parts/dense-set-part.ts';
import { type ChunkedIndex, renderChunks } from '../../../src/query/request/projection/chunk-texts.ts';
import { threadMs } from '../../support/thread-time.ts';

const definition = { kind: 'dense', managed: { field: '$.text', chunker: {} } };
const index = { name: 'i', chunksName: 'i_chunks', definition, vectorFingerprint: 'f' } as unknown as ChunkedIndex;

/** The chunks of a text at these places, in characters. */
function chunksOf(text: string, places: readonly (readonly [start: number, end: number])[]) {
  const characters = [...text];
  const before = [0];
  for (const each of characters) before.push((before.at(-1) ?? 0) + Buffer.byteLength(each));
  const vectors = places.map(([start, end]) => ({
    start: before[start] ?? 0,
    end: before[end] ?? 0,
    hash: sourceHash('f', characters.slice(start, end).join('')),
    vector: Float32Array.of(1),
  }));
  const body = denseSetBody(1, vectors);
  return () => {
    const document = { key: 'k', body: JSON.stringify({ text }) };
    return JSON.parse(renderChunks(body, document, { index, number: undefined, templates: {} as never }));
  };
}

test('places of chunks are told in characters and in bytes, also of chunks that overlap', () => {
  const shown = chunksOf('aé😀 bü日本', [
    [0, 3],
    [2, 6],
    [5, 8],
  ])();
  expect(
    shown.map((each: Record<string, unknown>) => [
      each._content,
      [each._start_char, each._end_char],
      [each._start_offset, each._end_offset],
    ]),
  ).toEqual([
    ['aé😀', [0, 3], [0, 7]],
    ['😀 bü', [2, 6], [3, 11]],
    ['ü日本', [5, 8], [9, 17]],
  ]);
});

test('four thousand chunks of a long text take a time in proportion', () => {
  const chunks = 4_000;
  const places = Array.from({ length: chunks }, (_, at) => [at * 400, at * 400 + 500] as const);
  const render = chunksOf('é'.repeat(chunks * 400 + 100), places);
  const started = threadMs();
  expect(render()).toHaveLength(chunks);
  // A tenth of a second; many seconds if the text before each were looked at again.
  expect(threadMs() - started).toBeLessThan(1_500);
});
