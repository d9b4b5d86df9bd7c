import { sourceHash, writtenTextOf } from '../../../enrichment/derive-source.ts';
import type { Templates } from '../../../enrichment/template/templates.ts';
import type { VectorIndexDefinition } from '../../../index-kinds/all-kinds.ts';
import { readDenseSpans } from '../../../lib/parts/dense-set-part.ts';
import { formOfBody, partForm, sourceHashOf } from '../../../lib/parts/part-body.ts';
import { readSparseSpans } from '../../../lib/parts/sparse-set-part.ts';
import type { TextSpan } from '../../../lib/parts/text-span.ts';
import { shownChunk } from './shown-chunk.ts';

/** An index that embeds texts in chunks, as answers show what it has embedded. */
export interface ChunkedIndex {
  /** Of the index. */
  readonly name: string;
  /** Under which its chunks are shown. */
  readonly chunksName: string;
  readonly definition: VectorIndexDefinition;
  /** Everything that a vector depends on, beside its text. */
  readonly vectorFingerprint: string;
}

/**
 * The chunks of a document that are embedded, as a JSON array in the order of the text; of one of them alone where `number`
 * says which. Only texts are kept that the document still has: a chunk of an earlier text, which is to be embedded again,
 * is left out, and so is the text of one that holds media, which is not fetched to be shown.
 */
export function renderChunks(
  part: Uint8Array | undefined,
  document: { readonly key: string; readonly body: string },
  {
    index,
    number,
    templates,
  }: { index: ChunkedIndex; number: number | undefined; templates: Pick<Templates, 'render'> },
): string {
  const source = index.definition.managed;
  if (part === undefined || source === undefined) return '[]';
  const text = writtenTextOf(document.body, source, templates);
  if (text === undefined) return '[]';
  const bytes = Buffer.from(text);
  const charactersBefore = counterOf(bytes);
  const spans = spansOf(part);
  const field = source.template === undefined ? source.field : undefined;
  const origin = { field, hash: sourceHashOf(part), count: spans.length };
  const chunks = [...spans.entries()].flatMap(([at, { start, end, hash }]) => {
    if (number !== undefined && at !== number) return [];
    const content = bytes.subarray(start, end).toString();
    if (Buffer.compare(sourceHash(index.vectorFingerprint, content), hash) !== 0) return [];
    const before = charactersBefore(start);
    const characters = { start: before, end: before + counterOf(bytes.subarray(start, end))(end - start) };
    const chunk = { documentKey: document.key, artifactName: index.chunksName, number: at, content };
    return [shownChunk({ ...chunk, characters, bytes: { start, end } }, origin)];
  });
  return JSON.stringify(chunks);
}

function spansOf(part: Uint8Array): TextSpan[] {
  const form = formOfBody(part);
  if (form === partForm.denseSet) return readDenseSpans(part);
  return form === partForm.sparseSet ? readSparseSpans(part) : [];
}

/** Counts the characters (Unicode code points) before places in UTF-8, each from the one before it. */
function counterOf(utf8: Uint8Array): (byte: number) => number {
  let at = 0;
  let characters = 0;
  return (byte) => {
    if (byte < at) at = characters = 0;
    for (; at < byte; at += 1) if (((utf8[at] ?? 0) & 0xc0) !== 0x80) characters += 1;
    return characters;
  };
}
