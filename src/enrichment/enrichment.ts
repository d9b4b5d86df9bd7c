import { type Caller, serverCaller } from '../access/principal.ts';
import { limits } from '../config/limits.ts';
import type { CheckedIndexConfig, IndexDefinition } from '../index-kinds/all-kinds.ts';
import { unknownDimension } from '../index-kinds/embeddings-config.ts';
import { type ManagedSource, managedSourceOf } from '../index-kinds/managed-source.ts';
import type { OpenPartProducer } from '../indexing/part-producer.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import { type Embedder, probeEmbedder } from '../inference/providers/embedder.ts';
import type { Clock } from '../lib/clock.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { ProviderConfig } from '../provider-config/provider-config.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import { BackfillLane } from './backfill-lane.ts';
import type { SourceTemplates } from './derive-source.ts';
import type { TemplateMedia } from './media/template-media.ts';
import { partDefinition } from './part-definition.ts';
import { PartFollower } from './part-follower.ts';
import { precomputeParts } from './precompute.ts';
import { Templates } from './template/templates.ts';

interface EnrichmentDeps {
  /** Throws `ServiceError` where the configuration leads to no embedder. */
  readonly embedderOf: (config: ProviderConfig) => Embedder;
  /** Reads what templates name; without it, media are refused. */
  readonly media: Pick<TemplateMedia, 'resolve'> | undefined;
  readonly log: RangeLog;
  readonly clock: Clock;
  readonly onFailed: (definition: IndexDefinition, error: unknown, attempt: number) => void;
  readonly onProduced: (texts: number) => void;
}

/** Makes the vectors of managed indexes: checks what they are made by, and keeps them up with their documents. */
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
  async prepare(config: CheckedIndexConfig, caller: Caller): Promise<CheckedIndexConfig> {
    if (config.type !== 'embeddings') return config;
    const source = managedSourceOf(config);
    if (!source) return config;
    if (source.template !== undefined) this.#templates.check(source.template);
    const made = await this.#probe(config, source, caller);
    if (made === undefined) return config;
    if (config.sparse !== made.sparse) {
      const kinds = made.sparse ? 'sparse vectors: set `sparse` to true' : 'dense vectors: leave `sparse` out';
      throw new ServiceError('invalid_request', `the embedder makes ${kinds}`);
    }
    if (config.sparse || made.sparse) return config;
    if (config.dimension !== unknownDimension && config.dimension !== made.dimension) {
      const message = `\`dimension\` is ${config.dimension}, but the embedder makes vectors of ${made.dimension}`;
      throw new ServiceError('invalid_request', message);
    }
    return { ...config, dimension: made.dimension };
  }

  /** Follows the documents of a range for an index; undefined for one whose vectors the server does not make. */
  readonly open: OpenPartProducer = (range, definition) => {
    const { log, clock, onFailed, onProduced, embedderOf } = this.#deps;
    const part = partDefinition(definition, embedderOf);
    if (!part) return undefined;
    const deps = {
      log,
      clock,
      lane: this.#lane,
      templates: this.#sources,
      onFailed: (error: unknown, attempt: number) => onFailed(definition, error, attempt),
      onProduced,
    };
    return new PartFollower(deps, range, part);
  };

  /**
   * The rows of a write to one range with the parts of its documents, made before anything is written. Throws
   * `enrichment_failed` for a document that cannot be embedded, and the embedder's own fault.
   */
  precompute(
    frame: Uint8Array<ArrayBuffer>,
    stored: RangeReader,
    definitions: readonly IndexDefinition[],
    caller: Caller,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const parts = definitions.flatMap((definition) => partDefinition(definition, this.#deps.embedderOf) ?? []);
    if (parts.length === 0) return Promise.resolve(frame);
    return precomputeParts(frame, { stored, definitions: parts, templates: this.#sources, caller });
  }

  /** What the embedder makes; undefined when it does not answer now, and need not. */
  async #probe(config: CheckedIndexConfig, { embedder, together }: ManagedSource, caller: Caller) {
    try {
      // Whoever may change the table may have its index embed, without a grant for inference.
      const call = { caller: serverCaller(caller.requestId, caller.signal), signal: caller.signal };
      return await probeEmbedder(this.#deps.embedderOf(embedder), call, { together });
    } catch (error) {
      if (!(error instanceof ServiceError) || faultOf(error) !== 'provider' || !error.retryable) throw error;
      if (error.code === 'credential_unavailable') throw new ServiceError('invalid_request', error.message);
      const isKnown = config.type === 'embeddings' && (config.sparse || config.dimension !== unknownDimension);
      if (isKnown) return undefined;
      throw error;
    }
  }
}
