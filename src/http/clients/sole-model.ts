import type { Inference } from '../../inference/inference.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import type { ModelKind } from '../../protocol/models/model-kinds.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * The model of a request that names none, as servers of a single model are asked: the only one of its kind. Throws
 * `model_not_found` where there is none, `invalid_request` where there are several.
 */
export function soleModel({ registry }: Pick<Inference, 'registry'>, kind: ModelKind): InstalledModel {
  registry.rescan();
  const [only, ...others] = registry.models.filter((model) => model.kind === kind);
  if (only === undefined) throw new ServiceError('model_not_found', `no model is installed among the ${kind}`);
  if (others.length === 0) return only;
  const names = [only, ...others].map(({ name }) => `"${name}"`).join(', ');
  throw new ServiceError('invalid_request', `member "model" is missing; the ${kind} are ${names}`);
}
