import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Enrichment } from '../../enrichment/enrichment.ts';
import type { PartPreview, PreviewedChunk, PreviewedDocument } from '../../enrichment/part-preview.ts';
import { type CheckedIndexConfig, defineIndex } from '../../index-kinds/all-kinds.ts';
import { readIndexConfig } from '../../index-kinds/configuration/index-config.ts';
import { shownIndexConfig } from '../../index-kinds/configuration/managed-source.ts';
import type { Clock } from '../../lib/clock.ts';
import { CodePointOffsets } from '../../lib/text/code-points.ts';
import { hasExpired } from '../../lib/ttl.ts';
import {
  type IndexPreview,
  type IndexPreviewRequest,
  type PreviewedIndexDocument,
  previewTextCharsMax,
  usualPreviewDocuments,
} from '../../protocol/database/index-preview.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { checkIndexName } from '../../protocol/names.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';

interface IndexPreviewsDeps {
  readonly tables: TableLookup;
  readonly enrichment: Pick<Enrichment, 'prepare' | 'preview'>;
  readonly clock: Clock;
}

/** Bytes of a value of a dense vector; an entry of a sparse one has a token as well. */
const valueBytes = 4;

/** Tells what a managed index would make of a few documents, before it is paid for all of them. Nothing is stored. */
export class IndexPreviews {
  readonly #deps: IndexPreviewsDeps;

  constructor(deps: IndexPreviewsDeps) {
    this.#deps = deps;
  }

  /**
   * Fails with `index_not_found` where the request has no configuration and the table no such index, `key_not_found`, what
   * creating an index of the configuration fails with, and a fault of the embedder.
   */
  async preview(
    tableName: string,
    indexName: string,
    { config: requested, keys, limit = usualPreviewDocuments }: IndexPreviewRequest,
    caller: Caller,
  ): Promise<IndexPreview> {
    const { tables, enrichment } = this.#deps;
    const table = tables.get(tableName, caller, 'admin');
    const config =
      requested === undefined
        ? configOf(table, indexName)
        : await enrichment.prepare(readIndexConfig(checkIndexName(indexName), requested), caller);
    const identity = { name: indexName, incarnation: 0, partId: 0, memOnly: false };
    const preview = enrichment.preview(defineIndex(identity, config, undefined), caller);
    if (!preview) {
      const message = `there is nothing to preview of "${indexName}": a preview is of an index with an "embedder"`;
      throw new ServiceError('invalid_request', message);
    }
    const documents: PreviewedIndexDocument[] = [];
    for (const key of keys ?? (await this.#firstKeys(table, limit))) {
      const previewed = await this.#previewed(table, checkDocumentKey(key), preview);
      if (previewed) documents.push(shownDocument(key, previewed));
      else if (keys) throw new ServiceError('key_not_found', `table "${table.name}" has no document "${key}"`);
      caller.signal.throwIfAborted();
    }
    const total = totalOf(documents);
    const { documents: count } = await table.totals();
    return {
      config: { ...shownIndexConfig(config) },
      documents,
      total,
      estimate: estimateOf(count, total, documents, config),
    };
  }

  /** Keys of the first documents of the table that have not expired. */
  async #firstKeys(table: Table, count: number): Promise<string[]> {
    const keys: string[] = [];
    const bound = table.expiredAtOrBeforeMs(this.#deps.clock.nowMs());
    using lease = await table.lease();
    for (const { stored } of lease.ranges) {
      let after = '';
      for (let more = true; more && keys.length < count; ) {
        const bounds = { fromKey: after, fromInclusive: after === '', toKey: null, toInclusive: false };
        const page = stored.documents.page(bounds, count - keys.length, limits.scanPageBytesMax);
        keys.push(...page.documents.filter((document) => !hasExpired(document.ttlBaseMs, bound)).map(({ key }) => key));
        more = page.more && page.lastKey !== undefined;
        after = page.lastKey ?? '';
      }
    }
    return keys;
  }

  /** Undefined where there is no such document. The range is let go before a model is asked. */
  async #previewed(table: Table, key: string, preview: PartPreview): Promise<PreviewedDocument | undefined> {
    const bound = table.expiredAtOrBeforeMs(this.#deps.clock.nowMs());
    let body: Uint8Array;
    {
      using lease = await table.leaseOf(key);
      const document = lease.range.stored.documents.get(key);
      if (!document || hasExpired(document.ttlBaseMs, bound)) return undefined;
      body = document.body;
    }
    return await preview.of(body);
  }
}

function configOf(table: Table, name: string): CheckedIndexConfig {
  const index = table.listedIndexes.find((each) => each.name === name);
  if (index) return index.config;
  const message = `table "${table.name}" has no index "${name}"; give a "config" to preview one that is yet to be created`;
  throw new ServiceError('index_not_found', message);
}

function shownDocument(key: string, previewed: PreviewedDocument): PreviewedIndexDocument {
  const { state, image, vectorLengths, tokens, error } = previewed;
  return {
    _id: key,
    state,
    ...shownText(previewed),
    ...(image && { image: { media_type: image.mediaType, bytes: image.bytes } }),
    vector_lengths: [...vectorLengths],
    tokens,
    ...(error && { code: error.code, reason: error.message }),
    ...(state === 'none' && { reason: 'there is nothing to embed: the source is missing, null or empty' }),
  };
}

/** The beginning of a text, and the chunks that begin there. */
function shownText({
  text,
  chunks,
}: PreviewedDocument): Pick<PreviewedIndexDocument, 'text' | 'characters' | 'chunks'> {
  if (text === undefined) return {};
  const most = previewTextCharsMax;
  const shown = {
    text: text.slice(0, most).toWellFormed(),
    characters: new CodePointOffsets(text).at(text.length),
  };
  if (chunks === undefined) return shown;
  const shownChunks = chunks
    .entries()
    .flatMap(([at, chunk]) => (chunk.startChar < most ? [shownChunk(at, chunk)] : []));
  return { ...shown, chunks: [...shownChunks] };
}

function shownChunk(at: number, { content, startChar, endChar, startOffset, endOffset }: PreviewedChunk) {
  return {
    _chunk_id: at,
    _content: content,
    _start_char: startChar,
    _end_char: endChar,
    _start_offset: startOffset,
    _end_offset: endOffset,
  };
}

function totalOf(documents: readonly PreviewedIndexDocument[]): IndexPreview['total'] {
  const count = (wanted: PreviewedIndexDocument['state']) => documents.filter(({ state }) => state === wanted).length;
  return {
    documents: documents.length,
    ready: count('ready'),
    none: count('none'),
    failed: count('failed'),
    vectors: documents.reduce((sum, { vector_lengths: lengths }) => sum + lengths.length, 0),
    tokens: documents.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** The estimate for the table if all its documents were like these. */
function estimateOf(
  documents: number,
  total: IndexPreview['total'],
  sample: readonly PreviewedIndexDocument[],
  config: CheckedIndexConfig,
): IndexPreview['estimate'] {
  const scaled = (count: number) => (total.documents === 0 ? 0 : Math.round((count / total.documents) * documents));
  const values = sample.flatMap(({ vector_lengths: lengths }) => lengths).reduce((sum, length) => sum + length, 0);
  const isSparse = config.type === 'embeddings' && config.sparse;
  return {
    documents,
    vectors: scaled(total.vectors),
    tokens: scaled(total.tokens),
    vector_bytes: scaled(values * (isSparse ? 2 * valueBytes : valueBytes)),
  };
}
