import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import { type Embedder, embedderOf } from './embedder.ts';
import { MockProvider } from './mock-provider.ts';
import type { Provider } from './provider.ts';

interface ProvidersDeps {
  /** The models of this server. */
  readonly own: Provider;
}

/** Gives what configurations name. */
export class Providers {
  readonly #deps: ProvidersDeps;
  readonly #mock = new MockProvider();

  constructor(deps: ProvidersDeps) {
    this.#deps = deps;
  }

  /** Throws `not_implemented` for a provider that is still to come. */
  provider({ provider, url }: ProviderConfig): Provider {
    if (provider === 'service' && url === undefined) return this.#deps.own;
    if (provider === 'mock') return this.#mock;
    throw new ServiceError(
      'not_implemented',
      `the provider "${provider}" is not built yet; use "service" without a url`,
    );
  }

  embedder(config: ProviderConfig): Embedder {
    return embedderOf(this.provider(config), config);
  }
}
