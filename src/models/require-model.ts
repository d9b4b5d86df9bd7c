import { suggestion } from '../lib/text/did-you-mean.ts';
import type { ModelKind } from '../protocol/models/model-kinds.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { InstalledModel } from './installed-model.ts';
import type { ModelRegistry } from './model-registry.ts';

/** Where a route gets the model that a request names: `inference.models`. */
export interface ModelSource {
  /**
   * The model of that kind and name, its eight-bit variant where one is installed. Throws `ServiceError`:
   * `model_not_found`, `model_not_supported` for one of another kind, `model_load_failed` with the reason where its
   * files are refused, or `model_loading` with a time to retry while it is downloading.
   */
  require(kind: ModelKind, name: string): InstalledModel;
}

/** Looks among the installed models only. `hint` ends the sentence about one that is not there. */
export function requireInstalled(registry: ModelRegistry, kind: ModelKind, name: string, hint = ''): InstalledModel {
  const model = registry.find(kind, name);
  if (model !== undefined) return model;
  const refused = registry.refused.find((each) => each.kind === kind && each.name === name);
  if (refused !== undefined) {
    throw new ServiceError('model_load_failed', `the model "${name}" cannot be served: ${refused.reason}`);
  }
  const elsewhere = registry.findById(name);
  if (elsewhere !== undefined) {
    throw new ServiceError('model_not_supported', `"${name}" is among the ${elsewhere.kind}, not the ${kind}`);
  }
  const names = registry.models.flatMap((each) => (each.kind === kind ? [each.name] : []));
  throw new ServiceError(
    'model_not_found',
    `no model named "${name}" is installed among the ${kind}.${suggestion(name, names)} GET /ai/v1/models lists them${hint}`,
  );
}
