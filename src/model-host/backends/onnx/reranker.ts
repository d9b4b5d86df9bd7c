import { must } from '../../../lib/assert.ts';
import type { Backend } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import { loadCrossEncoder } from './cross-encoder.ts';
import { loadLateInteraction } from './late-interaction.ts';

/** Capabilities that mark a model which scores by the vectors of tokens. */
const lateCapabilities = ['late_interaction', 'colbert'];

export function loadReranker(spec: ModelSpec): Promise<Backend> {
  const { capabilities } = must(spec.model, 'a reranker is installed').manifest;
  const late = capabilities.some((each) => lateCapabilities.includes(each));
  return late ? loadLateInteraction(spec) : loadCrossEncoder(spec);
}
