import { type ArtifactText, bodyWithTexts } from '../indexing/enrichment/artifact-texts.ts';
import { textArtifactsOf } from '../indexing/followed-index.ts';
import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { StoredDocument } from '../storage/reader/document-store.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import { currentParts, type MadePart } from './current-parts.ts';
import type { FramedDocument } from './document-frames.ts';
import type { SearchableTable, ServingIndex } from './searchable-table.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** A stored document as a read gives it. */
interface ReadDocument {
  readonly ordinal: number;
  readonly sequence: number;
}

/** The artifacts of a document of which the text index has the texts. */
interface ReadTexts {
  /** Part id -> body. */
  readonly artifacts: ReadonlyMap<number, Uint8Array> | undefined;
  /** By which change the newest of them came; 0 where there are none. */
  readonly sequence: number;
  /** Some were left out, which an index may have. */
  readonly isLacking: boolean;
}

type ReadRange = Pick<IndexedRange, 'producer'> & { readonly stored: Pick<RangeReader, 'atOneInstant' | 'parts'> };

type MadeText = ArtifactText & MadePart;

/** The artifacts of a table whose texts a full-text index of it holds, the serving one where none is said. */
export function indexedTextsOf(
  { artifacts, servingIndex }: Pick<SearchableTable, 'artifacts' | 'servingIndex'>,
  { definition }: Pick<ServingIndex, 'definition'> = servingIndex,
): readonly MadeText[] {
  return textArtifactsOf(definition, artifacts);
}

/**
 * Documents as a full-text index of their table sees them: with the texts of their artifacts. These are read together with each
 * document, so that none is matched, and shown or hidden for it, by what was made of another version.
 */
export class IndexedBodies {
  readonly #texts: readonly MadeText[];
  readonly #hides: boolean;
  readonly #read = new WeakMap<ReadDocument, ReadTexts>();

  /**
   * `texts`: those that the index holds. `hides`: some documents are hidden from the caller. A text of an earlier
   * version of a document may be of one that was hidden, and is then left out.
   */
  constructor(texts: readonly MadeText[], { hides }: { hides: boolean }) {
    this.#texts = texts;
    this.#hides = hides;
  }

  /** The index holds no texts of artifacts: documents are seen as they are stored. */
  get isEmpty(): boolean {
    return this.#texts.length === 0;
  }

  /** By which changes a document has got its texts: part id -> sequence, 0 for a text that it has not. */
  textSequences({ stored: { parts } }: ReadRange, { ordinal }: ReadDocument): [partId: number, sequence: number][] {
    return this.#texts.map(({ partId }) => [partId, parts.sequences([ordinal], partId).get(ordinal) ?? 0]);
  }

  /** Reads documents of a range, and what belongs to them, as of one moment. */
  read<Found>(range: ReadRange, find: () => Found, documentsOf: (found: Found) => Iterable<ReadDocument>): Found {
    if (this.#texts.length === 0) return find();
    return range.stored.atOneInstant(() => {
      const found = find();
      this.#note(range, [...documentsOf(found)]);
      return found;
    });
  }

  /** The document of a key, read as by `read`; undefined where there is none. */
  get(range: IndexedRange, key: string): StoredDocument | undefined {
    return this.read(
      range,
      () => range.stored.documents.get(key),
      (found) => (found ? [found] : []),
    );
  }

  /** Those of the documents that have changed since they were read, or whose texts have. */
  changed<Document extends ReadDocument>({ stored }: IndexedRange, documents: readonly Document[]): Set<Document> {
    const now = stored.documents.byOrdinals(documents.map(({ ordinal }) => ordinal)).documents;
    const sequences = new Map(now.map(({ ordinal, sequence }) => [ordinal, sequence]));
    const texts = this.#textSequences(stored, documents);
    const isSame = (document: Document) =>
      sequences.get(document.ordinal) === document.sequence &&
      texts(document) === (this.#read.get(document)?.sequence ?? 0);
    return new Set(documents.filter((document) => !isSame(document)));
  }

  #note(range: ReadRange, documents: readonly ReadDocument[]): void {
    const ordinals = documents.map(({ ordinal }) => ordinal);
    const { found } = range.stored.parts.read(
      ordinals,
      this.#texts.map(({ partId }) => partId),
    );
    const sequenceOf = this.#textSequences(range.stored, documents);
    const isCurrent = this.#hides ? currentParts(range, this.#texts, documents) : undefined;
    for (const document of documents) {
      const made = found.get(document.ordinal);
      const artifacts = made && isCurrent ? this.#those(made, (text) => isCurrent(document, text)) : made;
      this.#read.set(document, { artifacts, sequence: sequenceOf(document), isLacking: artifacts !== made });
    }
  }

  /** The made texts that are wanted: `made` itself where all are. */
  #those(
    made: ReadonlyMap<number, Uint8Array>,
    isWanted: (text: MadeText) => boolean,
  ): ReadonlyMap<number, Uint8Array> {
    const wanted = this.#texts.filter((text) => made.has(text.partId) && isWanted(text)).map(({ partId }) => partId);
    return wanted.length === made.size ? made : new Map([...made].filter(([partId]) => wanted.includes(partId)));
  }

  #textSequences(
    { parts }: Pick<RangeReader, 'parts'>,
    documents: readonly ReadDocument[],
  ): (document: ReadDocument) => number {
    const ordinals = documents.map(({ ordinal }) => ordinal);
    const changes = this.#texts.map(({ partId }) => parts.sequences(ordinals, partId));
    return ({ ordinal }) => Math.max(0, ...changes.map((of) => of.get(ordinal) ?? 0));
  }

  /**
   * By which change a document that was read, or the newest of its texts, came to
   * be; infinite where an index may have it otherwise.
   */
  sequenceOf(document: ReadDocument): number {
    const read = this.#read.get(document);
    return read?.isLacking ? Number.POSITIVE_INFINITY : Math.max(document.sequence, read?.sequence ?? 0);
  }

  /** In the order of the documents, which `read` has found. */
  *of<Document extends ReadDocument>(
    documents: Iterable<Document>,
    framed: (document: Document) => FramedDocument,
  ): Generator<FramedDocument> {
    for (const document of documents) {
      const frame = framed(document);
      const artifacts = this.#read.get(document)?.artifacts;
      if (!artifacts) yield frame;
      else yield { ...frame, body: encoder.encode(bodyWithTexts(decoder.decode(frame.body), artifacts, this.#texts)) };
    }
  }
}
