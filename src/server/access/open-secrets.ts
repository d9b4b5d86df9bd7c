import { Credentials } from '../../access/secrets/credentials.ts';
import { ProviderHosts } from '../../access/secrets/provider-hosts.ts';
import { SecretStore } from '../../access/secrets/secret-store.ts';
import type { RunningConfig } from '../../config/reload.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { SecretFile, secretFileIn } from '../../storage/directory/secret-file.ts';

/** The secrets of a server, and what leans on them. */
export interface Secrets {
  readonly store: SecretStore;
  readonly credentials: Credentials;
  readonly hosts: ProviderHosts;
  readonly variables: () => ReadonlyMap<string, string>;
}

/** Reads the file of secrets. One that cannot be read is an error in the log and in status, and no reason not to serve. */
export function openSecrets({
  config,
  clock,
  logger,
}: {
  readonly config: RunningConfig;
  readonly clock: Clock;
  readonly logger: Logger;
}): Secrets {
  const { secretsFile, dataDir } = config.config;
  const source = new SecretFile(secretsFile ?? secretFileIn(dataDir));
  const store = new SecretStore({
    source,
    clock,
    onReload(error) {
      if (error !== undefined) {
        logger.error('the file of secrets cannot be read; the secrets that were there before are used', {}, error);
        return;
      }
      logger.info('secrets read');
      if (source.isOpenToOthers()) logger.warn('the file of secrets can be read by others than its owner');
    },
  });
  const variables = () => config.variables;
  const allowed = () => config.config.credentialVariables;
  return {
    store,
    credentials: new Credentials({ secrets: store, allowed, variables }),
    hosts: new ProviderHosts(() => config.config),
    variables,
  };
}
