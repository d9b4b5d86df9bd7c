import type { InferenceCall } from '../admission.ts';
import type { CutText } from '../chunking/chunk-cache.ts';
import type { ChunkRequest } from '../chunking/chunk-text.ts';
import type { Embeddings, EmbedRequest } from '../embeddings/embed-items.ts';
import type { Extracted, ExtractRequest } from '../extraction/extract-texts.ts';
import type { GenerationOptions, GenerationOutput } from '../generation/generate.ts';
import type { GenerationRequest } from '../generation/generation-request.ts';
import type { MediaReference } from '../media/media-reference.ts';
import type { Reranked, RerankRequest } from '../reranking/rerank-texts.ts';

export interface ReadRequest {
  readonly model: string;
  readonly images: readonly MediaReference[];
  /** The schema to look for; undefined to read all that is written. */
  readonly prompt: string | undefined;
  /** Of the text of one image. */
  readonly tokensMax: number;
}

export interface TranscribeRequest {
  readonly model: string;
  readonly audio: MediaReference;
  readonly language: string | undefined;
}

/** A text by a model. */
export interface WrittenText {
  readonly text: string;
  /** Whether it was cut at the most tokens that it may have. */
  readonly truncated: boolean;
}

/**
 * A place where models are: this server itself, or a service elsewhere. Every method throws `ServiceError`, whose
 * `retryable` tells a fault of the place (wait, then try again) from one of the request.
 */
export interface Provider {
  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings>;
  rerank(request: RerankRequest, call: InferenceCall): Promise<Reranked>;
  /** As many answers as the request asks for. With `onPiece` each also arrives in pieces, before the promise settles. */
  generate(
    request: GenerationRequest,
    call: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]>;
  /** Where a model cuts a text; absent where there are no models for it. */
  cut?(request: ChunkRequest, call: InferenceCall): Promise<CutText>;
  /** Reads the text in each image; absent where there are no models for it. */
  read?(request: ReadRequest, call: InferenceCall): Promise<readonly WrittenText[]>;
  /** Transcribes speech; absent where there are no models for it. */
  transcribe?(request: TranscribeRequest, call: InferenceCall): Promise<WrittenText>;
  /** Finds what the schema asks for in each text; absent where there are no models for it. */
  extract?(request: ExtractRequest, call: InferenceCall): Promise<Extracted>;
}
