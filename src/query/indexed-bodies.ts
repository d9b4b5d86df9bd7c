import { type ArtifactText, bodyWithTexts } from '../indexing/enrichment/artifact-texts.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import type { FramedDocument } from './document-frames.ts';
import type { SearchableTable } from './searchable-table.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** A stored document, and the range that it was read from. */
interface ReadDocument extends FramedDocument {
  readonly ordinal: number;
}

/** The artifacts of a table whose texts its default full-text index holds. */
function textsOf({ artifacts }: Pick<SearchableTable, 'artifacts'>): ArtifactText[] {
  return artifacts.filter(({ config }) => config.full_text_index).map(({ partId, name }) => ({ partId, name }));
}

/** Documents as the text index of their table sees them: with the texts of their artifacts. In the order in which they come. */
export function* indexedBodies<Document extends ReadDocument>(
  documents: Iterable<Document>,
  table: Pick<SearchableTable, 'artifacts'>,
  rangeOf: (document: Document) => RangeReader | undefined,
): Generator<FramedDocument> {
  const texts = textsOf(table);
  if (texts.length === 0) return yield* documents;
  const partIds = texts.map(({ partId }) => partId);
  for (const document of documents) {
    const { ordinal, body } = document;
    const artifacts = rangeOf(document)?.parts.read([ordinal], partIds).found.get(ordinal);
    if (!artifacts) yield document;
    else yield { ...document, body: encoder.encode(bodyWithTexts(decoder.decode(body), artifacts, texts)) };
  }
}
