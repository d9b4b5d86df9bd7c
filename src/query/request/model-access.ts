import { type Caller, requireInference, requireModels } from '../../access/principal.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';

/**
 * Throws `forbidden` where the caller may not use one of these models. Grants name models of this server; what is asked
 * of another one needs the grant for all.
 */
export function requireModelsOf(caller: Caller, configs: readonly ProviderConfig[]): void {
  for (const { provider, url, model } of configs) {
    if (provider === 'service' && url === undefined) requireModels(caller, [model]);
    else requireInference(caller, 'read');
  }
}
