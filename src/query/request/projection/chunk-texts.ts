import { sourceHash, writtenTextOf } from '../../../enrichment/derive-source.ts';
import type { Templates } from '../../../enrichment/template/templates.ts';
import type { VectorIndexDefinition } from '../../../index-kinds/all-kinds.ts';
import { readDenseSpans } from '../../../lib/parts/dense-set-part.ts';
import { formOfBody, partForm } from '../../../lib/parts/part-body.ts';
import { readSparseSpans } from '../../../lib/parts/sparse-set-part.ts';
import type { TextSpan } from '../../../lib/parts/text-span.ts';

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
  const wanted = [...spansOf(part).entries()].filter(([at]) => number === undefined || at === number);
  const chunks = wanted.flatMap(([at, span]) => {
    const content = bytes.subarray(span.start, span.end).toString();
    const isEmbedded = Buffer.compare(sourceHash(index.vectorFingerprint, content), span.hash) === 0;
    return isEmbedded ? [chunkMembers(at, span, content, { document, bytes, index })] : [];
  });
  return JSON.stringify(chunks);
}

function spansOf(part: Uint8Array): TextSpan[] {
  const form = formOfBody(part);
  if (form === partForm.denseSet) return readDenseSpans(part);
  return form === partForm.sparseSet ? readSparseSpans(part) : [];
}

function chunkMembers(
  number: number,
  { start, end }: TextSpan,
  content: string,
  of: { document: { readonly key: string }; bytes: Buffer; index: ChunkedIndex },
): object {
  const { document, bytes, index } = of;
  const before = charactersOf(bytes.subarray(0, start).toString());
  const field = index.definition.managed?.template === undefined ? index.definition.managed?.field : undefined;
  return {
    _id: `af1:chunk:${base64url(document.key)}:${base64url(index.chunksName)}:${number}`,
    _chunk_id: number,
    _content: content,
    _start_char: before,
    _end_char: before + charactersOf(content),
    _start_offset: start,
    _end_offset: end,
    _parent_doc_key: document.key,
    _artifact_name: index.chunksName,
    ...(field === undefined ? {} : { _source_field: field.replace(/^\$\./, '') }),
    _mime_type: 'text/plain',
  };
}

/** Unicode code points. */
function charactersOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count += 1;
  return count;
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
