import { namesHost } from '../../config/named-sections/host-pattern.ts';
import type { Config, OptionName } from '../../config/options.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** Addresses of the partner, which the operator has written as well. */
const partnerAddresses = [
  'partnerTokenUrl',
  'partnerRevocationUrl',
  'partnerAccountUrl',
  'partnerModelsUrl',
] as const satisfies readonly OptionName[];

type HostOptions = Pick<Config, 'providerHosts' | 'connections' | 'providers' | (typeof partnerAddresses)[number]>;

/**
 * The hosts that providers of models may be called at: those of the option, and those that the operator's own entries
 * name. A caller that may create an index names an address in it, and must not send secrets anywhere.
 */
export class ProviderHosts {
  readonly #options: () => HostOptions;

  constructor(options: () => HostOptions) {
    this.#options = options;
  }

  allows(url: URL): boolean {
    const options = this.#options();
    if (namesHost(options.providerHosts, url)) return true;
    const entries = [...options.connections.values(), ...options.providers.values()];
    const own = [...entries.map((entry) => entry.url), ...partnerAddresses.map((name) => options[name])];
    return own.some((each) => each !== undefined && URL.parse(each)?.host === url.host);
  }

  /** Throws `host_not_allowed`. */
  require(url: URL): void {
    if (this.allows(url)) return;
    const advice = 'an operator allows hosts by "inference.provider_hosts", or by an entry of "providers"';
    throw new ServiceError('host_not_allowed', `providers may not be called at the host "${url.host}"; ${advice}`);
  }
}
