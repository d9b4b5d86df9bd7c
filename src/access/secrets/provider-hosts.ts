import { namesHost } from '../../config/host-pattern.ts';
import type { Config } from '../../config/options.ts';
import { ServiceError } from '../../protocol/service-error.ts';

type HostOptions = Pick<Config, 'providerHosts' | 'connections' | 'providers'>;

/**
 * The hosts that providers of models may be called at: those of the option, and those that the operator's own entries
 * name. Whoever may create an index names an address in it, and must not send secrets anywhere.
 */
export class ProviderHosts {
  readonly #options: () => HostOptions;

  constructor(options: () => HostOptions) {
    this.#options = options;
  }

  allows(url: URL): boolean {
    const { providerHosts, connections, providers } = this.#options();
    if (namesHost(providerHosts, url)) return true;
    const own = [...connections.values(), ...providers.values()];
    return own.some((entry) => entry.url !== undefined && URL.parse(entry.url)?.host === url.host);
  }

  /** Throws `host_not_allowed`. */
  require(url: URL): void {
    if (this.allows(url)) return;
    const advice = 'an operator allows hosts by "inference.provider_hosts", or by an entry of "providers"';
    throw new ServiceError('host_not_allowed', `providers may not be called at the host "${url.host}"; ${advice}`);
  }
}
