import { expect, test } from 'bun:test';
import type { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { denseBody } from '../../../src/lib/parts/dense-part.ts';
import type { Hit } from '../../../src/query/execution/hydrate.ts';
import { IndexedBodies } from '../../../src/query/indexed-bodies.ts';
import { PartProjection } from '../../../src/query/request/projection/part-projection.ts';
import { compileProjection } from '../../../src/query/request/projection/projection.ts';

test('under a row filter no vector is shown that was written after its document was looked at', async () => {
  const identity = { name: 'taste', incarnation: 1, partId: 7, memOnly: false } as const;
  const index = { name: 'taste', definition: { ...identity, kind: 'dense', dimension: 1, metric: 'cosine' } } as const;
  const body = denseBody(7, Float32Array.of(0.5));
  const found = new Map([1, 2].map((ordinal) => [ordinal, new Map([[7, body]])] as const));
  // The document 2 was written again after the page was read.
  const documents = [1, 2].map((ordinal) => ({ ordinal, sequence: ordinal === 1 ? 5 : 9 }));
  const templates = { render: () => [] };
  const range = {
    stored: {
      atOneInstant: (read: () => unknown) => read(),
      parts: { read: () => ({ found, damaged: new Set() }) },
      documents: { byOrdinals: () => ({ documents, damaged: new Set() }) },
    },
  } as unknown as IndexedRange;
  const page = [
    { ordinal: 1, sequence: 5, key: 'a', text: '{}' },
    { ordinal: 2, sequence: 6, key: 'b', text: '{}' },
  ];
  const hits = page.map((document) => ({ range: 0, document }) as Hit);
  const projection = PartProjection.of(compileProjection(['_embeddings']), {
    indexes: [index],
    artifacts: [],
    templates,
    hides: true,
  });
  const shownOf = async (judged: IndexedBodies | undefined) => {
    const { shown } = (await projection?.ofHits(hits, [range], judged)) ?? {};
    return [...(shown ?? [])].map(([{ document }, parts]) => [document.key, parts.embeddings]);
  };
  expect(await shownOf(new IndexedBodies([], { hides: true }))).toEqual([['a', '{"taste":[0.5]}']]);
  expect((await shownOf(undefined)).map(([key]) => key)).toEqual(['a', 'b']);
});
