import type { Embedder } from '../inference/providers/embedder.ts';
import type { Provider } from '../inference/providers/provider.ts';
import type { ProviderConfig } from '../provider-config/provider-config.ts';

/** The makers of parts; both throw `ServiceError` where a configuration leads to none. */
export interface FindModels {
  readonly embedderOf: (config: ProviderConfig) => Embedder;
  readonly providerOf: (config: ProviderConfig) => Provider;
}
