import type { InferenceCall } from '../inference/admission.ts';
import type { Embedder } from '../inference/providers/embedder.ts';
import { CodePointOffsets } from '../lib/text/code-points.ts';
import type { ServiceError } from '../protocol/service-error.ts';
import { type Source, type SourceTemplates, sourceOf } from './derive-source.ts';
import type { Vector } from './embed-texts.ts';
import type { PartOutcome } from './following/part-outcome.ts';
import { vectorPart } from './part-batch.ts';
import type { PartDefinition } from './part-definition.ts';

/** A chunk of a text: its offsets in characters (code points) and in bytes of UTF-8, ends exclusive. */
export interface PreviewedChunk {
  readonly content: string;
  readonly startChar: number;
  readonly endChar: number;
  readonly startOffset: number;
  readonly endOffset: number;
}

/** The parts that a managed index would make of one document. */
export interface PreviewedDocument {
  /** `none`: there is nothing to embed. */
  readonly state: 'ready' | 'none' | 'failed';
  /** The input of an embedding: a text, or an image by its media type and its bytes. */
  readonly text?: string;
  readonly image?: { readonly mediaType: string; readonly bytes: number };
  /** With a chunker alone. */
  readonly chunks?: readonly PreviewedChunk[];
  /** Values of a dense vector, entries of a sparse one; one number for each vector. */
  readonly vectorLengths: readonly number[];
  /** Tokens that the embedder has counted for the document. */
  readonly tokens: number;
  readonly error?: ServiceError;
}

interface PreviewDeps {
  readonly templates: SourceTemplates;
  readonly call: InferenceCall;
}

/** Does with single documents what a follower of the index does with all of them, and keeps nothing. */
export class PartPreview {
  readonly #definition: PartDefinition;
  readonly #deps: PreviewDeps;
  readonly #newBatch: ReturnType<ReturnType<typeof vectorPart>['batches']>;
  #tokens = 0;

  constructor(definition: PartDefinition, deps: PreviewDeps) {
    this.#definition = definition;
    this.#deps = deps;
    const embedder = () => this.#counting(definition.embedder());
    this.#newBatch = vectorPart({ ...definition, embedder }).batches();
  }

  /** Throws a fault of the provider; one of the document is in what is returned. */
  async of(body: Uint8Array): Promise<PreviewedDocument> {
    const { templates, call } = this.#deps;
    const source = await sourceOf(body, this.#definition.source, templates, call);
    const before = this.#tokens;
    const batch = this.#newBatch();
    await batch.add({ ordinal: 0, key: new Uint8Array(), sequence: 0, body }, source, undefined, call);
    const [made] = await batch.run(call);
    return { ...shownSource(source), ...shownOutcome(made?.outcome, source), tokens: this.#tokens - before };
  }

  #counting(embedder: Embedder): Embedder {
    const embed: Embedder['embed'] = async (...request) => {
      const embeddings = await embedder.embed(...request);
      this.#tokens += embeddings.tokens;
      return embeddings;
    };
    return { ...embedder, embed };
  }
}

function shownSource(source: Source): Pick<PreviewedDocument, 'text' | 'image'> {
  if (source.kind === 'text') return { text: source.text };
  if (source.kind !== 'image') return {};
  const { mediaType, base64 } = source.image;
  return { image: { mediaType, bytes: Buffer.byteLength(base64, 'base64') } };
}

function shownOutcome(
  outcome: PartOutcome | undefined,
  source: Source,
): Pick<PreviewedDocument, 'state' | 'chunks' | 'vectorLengths' | 'error'> {
  if (outcome?.kind === 'failed') return { state: 'failed', vectorLengths: [], error: outcome.error };
  if (outcome?.kind === 'vector') return { state: 'ready', vectorLengths: [lengthOf(outcome.vector)] };
  if (outcome?.kind !== 'vectors') return { state: 'none', vectorLengths: [] };
  const text = source.kind === 'text' ? source.text : '';
  return {
    state: 'ready',
    chunks: chunksOf(text, outcome.vectors),
    vectorLengths: outcome.vectors.map(({ vector }) => lengthOf(vector)),
  };
}

function lengthOf(vector: Vector): number {
  return vector instanceof Float32Array ? vector.length : vector.values.length;
}

/** `spans` have offsets in bytes. */
function chunksOf(text: string, spans: readonly { readonly start: number; readonly end: number }[]): PreviewedChunk[] {
  const bytes = Buffer.from(text);
  const offsets = { starts: new CodePointOffsets(text), ends: new CodePointOffsets(text) };
  let [unit, byte] = [0, 0];
  return spans.map(({ start, end }) => {
    // Chunks may overlap, but each begins behind the beginning of the one before.
    unit += bytes.subarray(byte, start).toString().length;
    byte = start;
    const content = bytes.subarray(start, end).toString();
    return {
      content,
      startChar: offsets.starts.at(unit),
      endChar: offsets.ends.at(unit + content.length),
      startOffset: start,
      endOffset: end,
    };
  });
}
