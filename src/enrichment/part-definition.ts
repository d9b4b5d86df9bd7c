import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { ManagedSource } from '../index-kinds/managed-source.ts';
import type { Embedder } from '../inference/providers/embedder.ts';
import type { WantedVectors } from './embed-texts.ts';

/** What makes the vectors of one managed index, ready to work. */
export interface PartDefinition {
  readonly partId: number;
  readonly source: ManagedSource;
  readonly dimension: WantedVectors;
  /** Throws `ServiceError` while the configuration leads to no embedder. */
  readonly embedder: () => Embedder;
  /** What the vectors depend on beside the text. */
  readonly vectorFingerprint: string;
  /** What the parts depend on: with another one, every document is looked at again. */
  readonly fingerprint: string;
}

/** The definition of a managed index; undefined for any other. */
export function partDefinition(
  definition: IndexDefinition,
  embedderOf: (config: ManagedSource['embedder']) => Embedder,
): PartDefinition | undefined {
  if (definition.kind === 'full_text' || definition.managed === undefined) return undefined;
  const { partId, managed: source } = definition;
  const dimension = definition.kind === 'dense' ? definition.dimension : undefined;
  const { provider, model, dimensions } = source.embedder;
  const vectorFingerprint = JSON.stringify([provider, model, dimensions ?? null, dimension ?? 'sparse']);
  const fingerprint = JSON.stringify([vectorFingerprint, source.template ?? null, source.field ?? null]);
  return { partId, source, dimension, embedder: () => embedderOf(source.embedder), vectorFingerprint, fingerprint };
}
