import { limits } from '../config/limits.ts';
import type { InferenceCall } from '../inference/admission.ts';
import { must } from '../lib/assert.ts';
import type { ServiceError } from '../protocol/service-error.ts';
import { type Source, sourceHash } from './derive-source.ts';
import { type Embedded, embedTexts, type Vector } from './embed-texts.ts';
import type { PartDefinition } from './part-definition.ts';

/** A document as it was read. */
export interface DocumentRow {
  readonly ordinal: number;
  readonly key: Uint8Array;
  readonly sequence: number;
  readonly body: Uint8Array;
}

/** What becomes of a document's part. */
export type PartOutcome =
  | { readonly kind: 'kept' }
  | { readonly kind: 'vector'; readonly vector: Vector; readonly hash: Uint8Array }
  /** There is nothing to embed: a part that is there goes. */
  | { readonly kind: 'none' }
  /** `isFinal`: it fails again until the document changes. A part that is there is of an earlier text, and goes. */
  | { readonly kind: 'failed'; readonly error: ServiceError; readonly isFinal: boolean };

/** Vectors that are kept for the next texts that are equal, or for a document whose result came too late. */
const recentMax = 256;

/** Texts of documents on their way to an embedder, each of them once. */
export class PartBatch {
  readonly #definition: PartDefinition;
  readonly #recent: Map<string, Vector>;
  readonly #rows: { row: DocumentRow; outcome: PartOutcome | undefined; hash: Uint8Array | undefined }[] = [];
  /** Hash -> text, of those that have to be embedded. */
  readonly #texts = new Map<string, string>();
  #bytes = 0;

  /** `recent` is shared by the batches of a definition. */
  constructor(definition: PartDefinition, recent: Map<string, Vector>) {
    this.#definition = definition;
    this.#recent = recent;
  }

  get isFull(): boolean {
    return this.#texts.size >= limits.enrichmentBatchItems || this.#bytes >= limits.enrichmentBatchBytes;
  }

  /** Texts that have to be embedded. */
  get textCount(): number {
    return this.#texts.size;
  }

  /** `held`: the source hash of the part that is there, if one is. */
  add(row: DocumentRow, source: Source, held: Uint8Array | undefined): void {
    if (source.kind === 'none') this.#rows.push({ row, outcome: { kind: 'none' }, hash: undefined });
    else if (source.kind === 'invalid') {
      const outcome = { kind: 'failed', error: source.error, isFinal: true } as const;
      this.#rows.push({ row, outcome, hash: undefined });
    } else this.#addText(row, source.text, held);
  }

  #addText(row: DocumentRow, text: string, held: Uint8Array | undefined): void {
    const hash = sourceHash(this.#definition.vectorFingerprint, text);
    if (held && Buffer.compare(held, hash) === 0) {
      this.#rows.push({ row, outcome: { kind: 'kept' }, hash });
      return;
    }
    const name = nameOf(hash);
    const vector = this.#recent.get(name);
    this.#rows.push({ row, outcome: vector && { kind: 'vector', vector, hash }, hash });
    if (vector || this.#texts.has(name)) return;
    this.#texts.set(name, text);
    this.#bytes += text.length;
  }

  /** One call of the embedder for all texts. Throws a fault of the provider. In the order of the documents. */
  async run(call: InferenceCall): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    const { embedder, dimension } = this.#definition;
    const texts = [...this.#texts.values()];
    const embedded = texts.length === 0 ? [] : await embedTexts(embedder(), texts, dimension, call);
    const byName = new Map(
      [...this.#texts.keys()].map((name, at) => [name, must(embedded[at], 'an answer for each text')]),
    );
    for (const [name, result] of byName) if ('vector' in result) this.#keep(name, result.vector);
    return this.#rows.map(({ row, outcome, hash }) => ({
      row,
      outcome:
        outcome ?? outcomeOf(must(byName.get(nameOf(must(hash, 'a hash'))), 'an embedded text'), must(hash, 'a hash')),
    }));
  }

  #keep(name: string, vector: Vector): void {
    this.#recent.delete(name);
    this.#recent.set(name, vector);
    for (const oldest of this.#recent.keys()) {
      if (this.#recent.size <= recentMax) break;
      this.#recent.delete(oldest);
    }
  }
}

function outcomeOf(embedded: Embedded, hash: Uint8Array): PartOutcome {
  if ('vector' in embedded) return { kind: 'vector', vector: embedded.vector, hash };
  return { kind: 'failed', error: embedded.error, isFinal: false };
}

function nameOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('base64');
}
