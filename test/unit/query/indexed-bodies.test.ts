import { expect, test } from 'bun:test';
import { defineIndex } from '../../../src/index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../../../src/index-kinds/configuration/artifact-config.ts';
import { primaryIndexConfig } from '../../../src/index-kinds/configuration/index-config.ts';
import type { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { assetBody } from '../../../src/lib/parts/asset-part.ts';
import { IndexedBodies, indexedTextsOf } from '../../../src/query/indexed-bodies.ts';
import type { StoredDocument } from '../../../src/storage/reader/document-store.ts';

const encode = (text: string) => new TextEncoder().encode(text);
const partId = 7;
const primary = primaryIndexConfig(0);
const label: ArtifactDefinition = {
  name: 'label',
  partId,
  config: { name: 'label', kind: 'asset', full_text_index: true },
  source: undefined,
  index: undefined,
};

/** A range of one document, which has a label. */
class LabelledRange {
  version = 1;
  label = 'hidden';
  labelSequence = 2;
  inInstant = 0;
  /** Documents up to here have what is made of them. */
  covered = 1;

  document(): StoredDocument {
    const body = encode(`{"n":${this.version}}`);
    return { key: 'a', ordinal: 1, sequence: this.version, ttlBaseMs: undefined, writtenMs: undefined, body };
  }

  reader(): IndexedRange {
    const body = () => assetBody(partId, { mediaType: 'text/plain', value: encode(this.label) });
    const stored = {
      atOneInstant: (read: () => unknown) => {
        this.inInstant += 1;
        return read();
      },
      parts: {
        read: () => ({ found: new Map([[1, new Map([[partId, body()]])]]), damaged: new Set() }),
        sequences: () => new Map([[1, this.labelSequence]]),
      },
      documents: { byOrdinals: () => ({ documents: [this.document()], damaged: new Set() }) },
    };
    return {
      stored,
      producer: () => ({ report: () => ({ coveredThrough: this.covered }) }),
    } as unknown as IndexedRange;
  }
}

test('a document has the texts that were there when it was read, whatever is made of it later', () => {
  const range = new LabelledRange();
  const bodies = new IndexedBodies([label], { hides: false });
  const document = bodies.read(
    range.reader(),
    () => range.document(),
    (found) => [found],
  );
  range.label = 'open';
  range.labelSequence = 9;
  const [frame] = bodies.of([document], (each) => each);
  expect(new TextDecoder().decode(frame?.body)).toBe('{"n":1,"_artifacts":{"label":"hidden"}}');
  expect([range.inInstant, bodies.sequenceOf(document)]).toEqual([1, 2]);
});

test('a document has changed when it was written again, and when a text of it is newer', () => {
  const range = new LabelledRange();
  const bodies = new IndexedBodies([label], { hides: false });
  const read = () =>
    bodies.read(
      range.reader(),
      () => range.document(),
      (found) => [found],
    );
  const document = read();
  expect(bodies.changed(range.reader(), [document]).size).toBe(0);
  range.labelSequence = 9;
  expect(bodies.changed(range.reader(), [document])).toEqual(new Set([document]));
  const again = read();
  range.version = 10;
  expect(bodies.changed(range.reader(), [again]).size).toBe(1);
});

test('where the text index holds no artifacts, nothing is read beside the document', () => {
  const range = new LabelledRange();
  const definition = defineIndex(
    { name: 'full_text_index_v0', incarnation: 1, partId: 1, memOnly: false },
    primary,
    {},
  );
  const artifacts = [{ ...label, config: { ...label.config, full_text_index: false } }];
  const bodies = new IndexedBodies(
    indexedTextsOf({ artifacts, servingIndex: { name: 'full_text_index_v0', definition } }),
    { hides: true },
  );
  const document = bodies.read(
    range.reader(),
    () => range.document(),
    (found) => [found],
  );
  const [frame] = bodies.of([document], (each) => each);
  expect([range.inInstant, frame?.body]).toEqual([0, document.body]);
});

test('where documents are hidden, a document lacks what was made of an earlier version until that is known to be of this one too', () => {
  const range = new LabelledRange();
  const bodies = new IndexedBodies([label], { hides: true });
  const seen = () => {
    const document = bodies.read(
      range.reader(),
      () => range.document(),
      (found) => [found],
    );
    const [frame] = bodies.of([document], (each) => each);
    return [new TextDecoder().decode(frame?.body), bodies.sequenceOf(document)];
  };
  range.version = 5;
  expect(seen()).toEqual(['{"n":5}', Number.POSITIVE_INFINITY]);
  range.covered = 5;
  expect(seen()).toEqual(['{"n":5,"_artifacts":{"label":"hidden"}}', 5]);
  range.version = 7;
  range.labelSequence = 8;
  expect(seen()).toEqual(['{"n":7,"_artifacts":{"label":"hidden"}}', 8]);
});
