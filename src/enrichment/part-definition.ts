import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { ChunkerConfig } from '../index-kinds/configuration/chunker-config.ts';
import type { ManagedSource } from '../index-kinds/configuration/managed-source.ts';
import type { Embedder } from '../inference/providers/embedder.ts';
import { modelCutter } from './chunking/cut-by-model.ts';
import type { CutByModel } from './chunking/cut-text.ts';
import type { WantedVectors } from './embed-texts.ts';
import type { FindModels } from './find-models.ts';

/** The producer of the vectors of one managed index, ready to work. */
export interface PartDefinition {
  readonly partId: number;
  readonly source: ManagedSource;
  readonly dimension: WantedVectors;
  /** Throws `ServiceError` while the configuration leads to no embedder. */
  readonly embedder: () => Embedder;
  /** For chunkers that ask a model. */
  readonly cut: CutByModel;
  /** Undefined where each text has one vector. */
  readonly chunker?: ChunkerConfig | undefined;
  /** The chunks of a text are embedded in view of one another. */
  readonly together?: boolean;
  /** Everything that a vector depends on, beside its text. */
  readonly vectorFingerprint: string;
  /** Everything that all vectors of a document depend on, beside its text. */
  readonly fingerprintOfSource: string;
  /** The fingerprint of what the parts depend on: with another one, every document is looked at again. */
  readonly fingerprint: string;
}

/** Everything that a vector of a source's embedder depends on, beside its text. */
export function vectorFingerprintOf({ embedder, together }: ManagedSource, dimension: WantedVectors): string {
  const { provider, model, dimensions } = embedder;
  const late = together ? ['late'] : [];
  return JSON.stringify([provider, model, dimensions ?? null, dimension ?? 'sparse', ...late]);
}

/** The definition of a managed index; undefined for any other. */
export function partDefinition(
  definition: IndexDefinition,
  { embedderOf, providerOf }: FindModels,
): PartDefinition | undefined {
  if (!('managed' in definition) || definition.managed === undefined) return undefined;
  const { partId, managed: source } = definition;
  const dimension = definition.kind === 'dense' ? definition.dimension : undefined;
  const vectorFingerprint = vectorFingerprintOf(source, dimension);
  const { chunker, together } = source;
  const fingerprintOfSource = chunker ? JSON.stringify([vectorFingerprint, chunker]) : vectorFingerprint;
  const fingerprint = JSON.stringify([fingerprintOfSource, source.template ?? null, source.field ?? null]);
  const embedder = () => embedderOf(source.embedder);
  return {
    partId,
    source,
    dimension,
    embedder,
    cut: modelCutter(providerOf),
    chunker,
    together,
    vectorFingerprint,
    fingerprintOfSource,
    fingerprint,
  };
}
