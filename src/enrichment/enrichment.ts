import { type Caller, serverCaller } from '../access/principal.ts';
import { limits } from '../config/limits.ts';
import type { CheckedIndexConfig, IndexDefinition } from '../index-kinds/all-kinds.ts';
import {
  type ArtifactConfig,
  type ArtifactDefinition,
  chunkerOf,
  embedderConfigOf,
} from '../index-kinds/configuration/artifact-config.ts';

import type { ChunkerConfig } from '../index-kinds/configuration/chunker-config.ts';
import { templatesOf } from '../index-kinds/configuration/edge-source.ts';
import { unknownDimension } from '../index-kinds/configuration/embeddings-config.ts';
import type { IndexEnrichments } from '../index-kinds/configuration/index-enrichments.ts';
import { type ManagedSource, managedSourceOf } from '../index-kinds/configuration/managed-source.ts';
import type { GraphConfig } from '../index-kinds/graph.ts';
import type { OpenArtifactProducer, OpenPartProducer } from '../indexing/enrichment/part-producer.ts';

import type { InferenceCall } from '../inference/admission.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import { probeEmbedder } from '../inference/providers/embedder.ts';
import type { Clock } from '../lib/clock.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import { artifactPart } from './artifacts/artifact-part.ts';
import { checkChunkModel, modelCutter } from './chunking/cut-by-model.ts';
import type { SourceTemplates } from './derive-source.ts';
import { edgePart } from './edges/edge-part.ts';
import { fieldEdgePart } from './edges/field-edge-part.ts';
import type { FindModels } from './find-models.ts';

import { BackfillLane } from './following/backfill-lane.ts';
import type { FollowedPart } from './following/followed-part.ts';
import { PartFollower } from './following/part-follower.ts';

import type { TemplateMedia } from './media/template-media.ts';
import { vectorPart } from './part-batch.ts';
import { partDefinition } from './part-definition.ts';
import { PartPreview } from './part-preview.ts';
import { precomputeParts, type TransformedRows } from './precompute.ts';
import { Templates } from './template/templates.ts';

interface EnrichmentDeps extends FindModels {
  /** Reads what templates name; without it, media are refused. */
  readonly media: Pick<TemplateMedia, 'resolve'> | undefined;
  readonly log: RangeLog;
  readonly clock: Clock;
  readonly onFailed: (definition: { readonly name: string }, error: unknown, attempt: number) => void;
  readonly onProduced: (texts: number) => void;
}

/** An embedder that is asked what it makes. */
type Probed = Pick<ManagedSource, 'embedder'> & Partial<Pick<ManagedSource, 'together'>>;

/** The parts that are made of the documents of a table. */
interface EnrichedTable {
  readonly indexes: readonly { readonly definition: IndexDefinition }[];
  /** Each behind the one that it is made from. */
  readonly artifacts: readonly ArtifactDefinition[];
}

/**
 * Makes the vectors of managed indexes, the artifacts of enrichments, and the edges that follow from those: checks what
 * they are made by, and keeps them up with their documents.
 */
export class Enrichment {
  readonly #deps: EnrichmentDeps;
  readonly #templates: Templates;
  readonly #sources: SourceTemplates;
  readonly #lane = new BackfillLane(limits.backfillBatchesMax);

  constructor(deps: EnrichmentDeps) {
    this.#deps = deps;
    const templates = new Templates(deps.clock, limits.templateKeptMs);
    const { media } = deps;
    this.#templates = templates;
    this.#sources = {
      render: (template, document) => templates.render(template, document),
      resolve: media && ((parts, call) => media.resolve(parts, call)),
    };
  }

  /**
   * The configuration of an index that is about to be created, with the length of the vectors that its embedder makes. One
   * that cannot be asked now leaves an index whose length is given waiting for it. Throws `ServiceError` with what is wrong.
   */
  async prepare(given: CheckedIndexConfig, caller: Caller): Promise<CheckedIndexConfig> {
    const enrichments: IndexEnrichments = [];
    for (const each of given.enrichments) {
      enrichments.push(typeof each === 'string' ? each : await this.prepareArtifact(each, caller));
    }
    const config = { ...given, enrichments };
    if (config.type === 'graph') this.#checkGraph(config);
    if (config.type !== 'embeddings') return config;
    const source = managedSourceOf(config);
    if (!source) return config;
    if (source.template !== undefined) this.#templates.check(source.template);
    await this.#checkChunker(source.chunker, caller);
    const isKnown = config.sparse || config.dimension !== unknownDimension;
    const made = await this.#probe(source, isKnown, caller);
    if (made === undefined) return config;
    if (config.sparse !== made.sparse) {
      const kinds = made.sparse ? 'sparse vectors: set "sparse" to true' : 'dense vectors: leave "sparse" out';
      throw new ServiceError('invalid_request', `the embedder makes ${kinds}`);
    }
    if (config.sparse || made.sparse) return config;
    if (config.dimension !== unknownDimension && config.dimension !== made.dimension) {
      const message = `"dimension" is ${config.dimension}, but the embedder makes vectors of ${made.dimension}`;
      throw new ServiceError('invalid_request', message);
    }
    return { ...config, dimension: made.dimension };
  }

  /** Follows the documents of a range for an index; undefined for one whose vectors or edges the server does not make. */
  readonly open: OpenPartProducer = (range, definition) => {
    const part = this.#partOf(definition);
    return part && new PartFollower(this.#followerDeps(definition), range, part);
  };

  #partOf(definition: IndexDefinition): FollowedPart | undefined {
    const { render } = this.#sources;
    if (definition.kind === 'graph') {
      const { clock } = this.#deps;
      return edgePart(definition, { render, clock }) ?? fieldEdgePart(definition, clock);
    }
    const part = partDefinition(definition, this.#deps);
    return part && vectorPart(part);
  }

  /** Follows the documents of a range for an enrichment. */
  readonly openArtifact: OpenArtifactProducer = (range, definition) =>
    new PartFollower(this.#followerDeps(definition), range, artifactPart(definition, this.#deps));

  /**
   * Checks that indexes and enrichments which come from elsewhere can be followed as `open` and `openArtifact` do; nobody is
   * asked for that. Throws as they do.
   */
  check(indexes: readonly IndexDefinition[], artifacts: readonly ArtifactDefinition[]): void {
    for (const definition of indexes) this.#partOf(definition);
    for (const definition of artifacts) artifactPart(definition, this.#deps);
  }

  #followerDeps(definition: { readonly name: string }) {
    const { log, clock, onFailed, onProduced } = this.#deps;
    return {
      log,
      clock,
      lane: this.#lane,
      templates: this.#sources,
      onFailed: (error: unknown, attempt: number) => onFailed(definition, error, attempt),
      onProduced,
    };
  }

  /**
   * The configuration of an enrichment that is about to be created, with the length of the vectors that its embedder makes.
   * Throws `ServiceError` with what is wrong.
   */
  async prepareArtifact(config: ArtifactConfig, caller: Caller): Promise<ArtifactConfig> {
    if (config.template !== undefined) this.#templates.check(config.template);
    artifactPart({ name: config.name, partId: 0, config, source: undefined, index: undefined }, this.#deps);
    if (config.kind === 'chunk') await this.#checkChunker(chunkerOf(config), caller);
    if (config.kind !== 'embedding') return config;
    const { expected_dims: expected } = config;
    const made = await this.#probe({ embedder: embedderConfigOf(config) }, expected !== undefined, caller);
    if (made === undefined) return config;
    if (made.sparse) {
      throw new ServiceError('invalid_request', 'an embedding is a dense vector; its embedder makes sparse ones');
    }
    if (expected !== undefined && expected !== made.dimension) {
      const message = `"expected_dims" is ${expected}, but the embedder makes vectors of ${made.dimension}`;
      throw new ServiceError('invalid_request', message);
    }
    return { ...config, expected_dims: made.dimension };
  }

  /**
   * The rows of a write to one range with the parts of its documents, made before anything is written. `transformed` has
   * what the transforms among them, by their rows, will make of their documents; `expiredAtOrBeforeMs` is the latest TTL base
   * of documents that have expired at the time of the write. Throws
   * `enrichment_failed` for a document that cannot be embedded, and the embedder's own fault.
   */
  precompute(
    frame: Uint8Array<ArrayBuffer>,
    stored: RangeReader,
    { indexes, artifacts }: EnrichedTable,
    caller: Caller,
    left: { readonly transformed: TransformedRows; readonly expiredAtOrBeforeMs: number | undefined },
  ): Promise<Uint8Array<ArrayBuffer>> {
    const parts = [
      ...artifacts.map((artifact) => artifactPart(artifact, this.#deps)),
      ...indexes.flatMap(({ definition }) => partDefinition(definition, this.#deps) ?? []).map(vectorPart),
    ];
    if (parts.length === 0) return Promise.resolve(frame);
    return precomputeParts(frame, { stored, definitions: parts, templates: this.#sources, caller, ...left });
  }

  /** Makes of single documents what the index would make of them; undefined where its vectors come with the documents. */
  preview(definition: IndexDefinition, caller: Caller): PartPreview | undefined {
    const part = partDefinition(definition, this.#deps);
    return part && new PartPreview(part, { templates: this.#sources, call: callFor(caller) });
  }

  #checkGraph({ template, source, nodes, edge }: GraphConfig): void {
    if (template !== undefined) this.#templates.check(template);
    if (!source || !nodes || !edge) return;
    for (const template of templatesOf({ source, nodes, edge })) this.#templates.check(template);
  }

  async #checkChunker(chunker: ChunkerConfig | undefined, caller: Caller): Promise<void> {
    if (chunker?.by === 'model') await checkChunkModel(modelCutter(this.#deps.providerOf), chunker, callFor(caller));
  }

  /** The length of the embedder's vectors; undefined when it does not answer now, and need not. */
  async #probe({ embedder, together }: Probed, isKnown: boolean, caller: Caller) {
    try {
      return await probeEmbedder(this.#deps.embedderOf(embedder), callFor(caller), { together: together === true });
    } catch (error) {
      if (!(error instanceof ServiceError) || faultOf(error) !== 'provider' || !error.retryable) throw error;
      if (error.code === 'credential_unavailable') throw new ServiceError('invalid_request', error.message);
      if (isKnown) return undefined;
      const { message, retryAfterMs } = error;
      throw new ServiceError(
        'embedder_unavailable',
        `the embedder cannot be asked for the length of its vectors: ${message}; give the length to create it all the same`,
        { cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) },
      );
    }
  }
}

/** Access to change the table suffices for its index to embed: no grant for inference is needed. */
function callFor({ requestId, signal }: Caller): InferenceCall {
  return { caller: serverCaller(requestId, signal), signal };
}
