import { limits } from '../config/limits.ts';
import type { InferenceCall } from '../inference/admission.ts';
import type { EmbedItem } from '../inference/embeddings/embed-items.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import { assert, must } from '../lib/assert.ts';
import { slicesWithin } from '../lib/concurrency/slices-within.ts';
import { readDenseSet } from '../lib/parts/dense-set-part.ts';
import { formOfBody, partForm } from '../lib/parts/part-body.ts';
import { readSparseSet } from '../lib/parts/sparse-set-part.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { type Piece, piecesOf } from './chunking/text-pieces.ts';
import { type Source, sourceHash } from './derive-source.ts';
import { type Embedded, embedTexts, type Vector } from './embed-texts.ts';
import type { Batch, DocumentRow, FollowedPart } from './following/followed-part.ts';
import type { HeldPart } from './following/held-part.ts';
import type { PartOutcome } from './following/part-outcome.ts';
import { hashedImage, imageItem } from './media/image-item.ts';
import type { PartDefinition } from './part-definition.ts';

/** The sources of a document's part: vectors by the names of their texts. */
type Plan =
  | { readonly kind: 'text'; readonly hash: Uint8Array }
  | {
      readonly kind: 'pieces';
      readonly hash: Uint8Array;
      readonly pieces: readonly Piece[];
      readonly names: readonly string[];
    };

/** A text or an image to be embedded, and its bytes. */
interface WantedItem {
  readonly item: EmbedItem;
  readonly size: number;
}

/** Numbers of a sparse vector, as models usually make them: what a document's vectors take is known when they are there. */
const usualSparseNumbers = 512;
/** Vectors that are kept for the next texts that are equal, or for a document whose result came too late. */
const recentMax = 256;

/** Texts of documents on their way to an embedder, each of them once. */
class PartBatch implements Batch {
  readonly #definition: PartDefinition;
  readonly #recent: Map<string, Vector>;
  readonly #rows: { row: DocumentRow; known: PartOutcome | Plan }[] = [];
  /** By name, those that have to be embedded. */
  readonly #texts = new Map<string, WantedItem>();
  /** By name, the chunks of texts that are read together. */
  readonly #together: Map<string, WantedItem>[] = [];
  #togetherCount = 0;
  /** Name -> vector, of those that need not. */
  readonly #vectors = new Map<string, Vector>();
  #bytes = 0;
  #vectorBytes = 0;

  /** `recent` is shared by the batches of a definition. */
  constructor(definition: PartDefinition, recent: Map<string, Vector>) {
    this.#definition = definition;
    this.#recent = recent;
  }

  get isFull(): boolean {
    const hasTexts = this.sourceCount >= limits.enrichmentBatchItems || this.#bytes >= limits.enrichmentBatchBytes;
    return hasTexts || this.#vectorBytes >= limits.documentVectorsBytesMax;
  }

  /** Texts that have to be embedded. */
  get sourceCount(): number {
    return this.#texts.size + this.#togetherCount;
  }

  /** `held`: the part that is there, if one is. A promise where the text has to be cut into chunks. */
  add(row: DocumentRow, source: Source, held: HeldPart | undefined, call: InferenceCall): Promise<void> | undefined {
    const settle = (known: PartOutcome | Plan) => void this.#rows.push({ row, known });
    if (source.kind === 'none') return settle({ kind: 'none' });
    if (source.kind === 'invalid') return settle({ kind: 'failed', error: source.error, isFinal: true });
    assert(source.kind !== 'content', 'an index embeds a text or an image');
    const { fingerprintOfSource, chunker } = this.#definition;
    const item = source.kind === 'text' ? source.text : imageItem(source.image);
    const made = source.kind === 'text' ? source.text : hashedImage(source.image);
    const hash = sourceHash(fingerprintOfSource, made);
    if (held?.isOf(hash)) return settle({ kind: 'kept' });
    if (chunker && source.kind === 'text') return this.#planPieces(source.text, hash, held, call).then(settle);
    if (chunker) return settle({ kind: 'failed', error: imageInChunks(), isFinal: true });
    this.#want(hash, item, made.length);
    return settle({ kind: 'text', hash });
  }

  async #planPieces(
    text: string,
    hash: Uint8Array,
    held: HeldPart | undefined,
    call: InferenceCall,
  ): Promise<PartOutcome | Plan> {
    const { chunker, cut, dimension, vectorFingerprint } = this.#definition;
    try {
      const cutFor = {
        vectorFingerprint,
        vectorBytes: 4 * (dimension ?? usualSparseNumbers),
        cutting: { byModel: cut, call },
      };
      const pieces = await piecesOf(text, must(chunker, 'a chunker'), cutFor);
      if (pieces.length === 0) return { kind: 'none' };
      this.#vectorBytes += cutFor.vectorBytes * pieces.length;
      if (this.#definition.together) return { kind: 'pieces', hash, pieces, names: this.#wantTogether(hash, pieces) };
      this.#takeHeld(held);
      for (const piece of pieces) this.#want(piece.hash, piece.text, piece.text.length);
      return { kind: 'pieces', hash, pieces, names: pieces.map((piece) => nameOf(piece.hash)) };
    } catch (error) {
      if (!(error instanceof ServiceError) || faultOf(error) !== 'item') throw error;
      return { kind: 'failed', error, isFinal: error.code !== 'inference_failed' };
    }
  }

  /** A chunk that was there before keeps its vector. */
  #takeHeld(held: HeldPart | undefined): void {
    const body = held?.body();
    if (body === undefined) return;
    for (const { hash, vector } of chunkVectorsOf(body)) this.#vectors.set(nameOf(hash), vector);
  }

  /** Vectors that were made in view of the whole text do not fit another one. */
  #wantTogether(hash: Uint8Array, pieces: readonly Piece[]): string[] {
    const names = pieces.map((_, at) => `${nameOf(hash)}:${at}`);
    const known = names.map((name) => this.#vectors.get(name) ?? this.#recent.get(name));
    if (known.every((vector) => vector !== undefined)) {
      for (const [at, vector] of known.entries()) this.#vectors.set(names[at] ?? '', vector);
      return names;
    }
    const items = pieces.map(({ text }, at): [string, WantedItem] => [
      names[at] ?? '',
      { item: text, size: text.length },
    ]);
    this.#together.push(new Map(items));
    this.#togetherCount += items.length;
    this.#bytes += pieces.reduce((sum, { text }) => sum + text.length, 0);
    return names;
  }

  #want(hash: Uint8Array, item: EmbedItem, size: number): void {
    const name = nameOf(hash);
    const recent = this.#vectors.get(name) ?? this.#recent.get(name);
    if (recent) this.#vectors.set(name, recent);
    if (recent || this.#texts.has(name)) return;
    this.#texts.set(name, { item, size });
    this.#bytes += size;
  }

  /** Embeds all texts. Throws a fault of the provider. In the order of the documents. */
  async run(call: InferenceCall): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    const errors = new Map<string, ServiceError>();
    const { embedder, dimension } = this.#definition;
    for (const texts of [...requestsOf(this.#texts), ...this.#together]) {
      const together = this.#together.includes(texts);
      const items = [...texts.values()].map(({ item }) => item);
      const embedded = await embedTexts(embedder(), items, dimension, call, { together });
      for (const [at, name] of [...texts.keys()].entries()) {
        const result: Embedded = must(embedded[at], 'an answer for each text');
        if ('error' in result) errors.set(name, result.error);
        else this.#keep(name, result.vector);
      }
    }
    return this.#rows.map(({ row, known }) => ({ row, outcome: this.#outcomeOf(known, errors) }));
  }

  #outcomeOf(known: PartOutcome | Plan, errors: ReadonlyMap<string, ServiceError>): PartOutcome {
    if (known.kind !== 'text' && known.kind !== 'pieces') return known;
    const { hash } = known;
    const names = known.kind === 'text' ? [nameOf(hash)] : known.names;
    const error = names.map((name) => errors.get(name)).find((each) => each !== undefined);
    if (error) return { kind: 'failed', error, isFinal: false };
    const made = names.map((name) => must(this.#vectors.get(name), 'an embedded text'));
    if (known.kind === 'text') return { kind: 'vector', vector: must(made[0], 'a vector'), hash };
    if (made.reduce((sum, vector) => sum + bytesOf(vector), 0) > limits.documentVectorsBytesMax) {
      return { kind: 'failed', error: tooManyBytes(), isFinal: true };
    }
    const vectors = known.pieces.map((piece, at) => ({ ...piece, vector: must(made[at], 'a vector of each chunk') }));
    return { kind: 'vectors', vectors, hash };
  }

  #keep(name: string, vector: Vector): void {
    this.#vectors.set(name, vector);
    this.#recent.delete(name);
    this.#recent.set(name, vector);
    for (const oldest of this.#recent.keys()) {
      if (this.#recent.size <= recentMax) break;
      this.#recent.delete(oldest);
    }
  }
}

/** The texts of a batch by the requests that carry them: a document may have more chunks than one request takes. */
function requestsOf(texts: ReadonlyMap<string, WantedItem>): Map<string, WantedItem>[] {
  const bounds = { items: limits.enrichmentBatchItems, bytes: limits.enrichmentBatchBytes };
  return [...slicesWithin(texts, ([, { size }]) => size, bounds)].map((slice) => new Map(slice));
}

function imageInChunks(): ServiceError {
  return new ServiceError(
    'invalid_media',
    'an image has no chunks: leave "chunker" out of an index that embeds images',
  );
}

function chunkVectorsOf(body: Uint8Array): readonly { readonly hash: Uint8Array; readonly vector: Vector }[] {
  const form = formOfBody(body);
  if (form === partForm.denseSet) return readDenseSet(body);
  return form === partForm.sparseSet ? readSparseSet(body) : [];
}

function bytesOf(vector: Vector): number {
  return vector instanceof Float32Array ? vector.byteLength : vector.indices.byteLength + vector.values.byteLength;
}

function tooManyBytes(): ServiceError {
  const most = `${limits.documentVectorsBytesMax} bytes, which is the most for one document`;
  const remedy = 'give the chunker greater "target_tokens", or "max_chunks" to leave out the rest of long texts';
  return new ServiceError('limit_exceeded', `the vectors of the text have more than ${most}; ${remedy}`);
}

function nameOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('base64');
}

/** The vectors of a managed index, as a follower makes them. */
export function vectorPart(definition: PartDefinition): FollowedPart {
  const { partId, source, fingerprint } = definition;
  const batches = () => {
    const recent = new Map<string, Vector>();
    return () => new PartBatch(definition, recent);
  };
  return { partId, source, fingerprint, batches };
}
