import type { RunningConfig } from '../config/reload.ts';
import { PartnerAccounts } from '../connections/partner/partner-accounts.ts';
import { PartnerAttempts } from '../connections/partner/partner-attempts.ts';
import { PartnerConnections } from '../connections/partner/partner-connections.ts';
import { PartnerOAuth } from '../connections/partner/partner-oauth.ts';
import { PartnerService } from '../connections/partner/partner-service.ts';
import type { ProviderHttp } from '../inference/providers/client/provider-http.ts';
import type { Clock } from '../lib/clock.ts';
import { randomBytes } from '../lib/random-bytes.ts';
import type { Logger } from '../observability/logger.ts';
import type { Secrets } from './access/open-secrets.ts';

interface PartnerDeps {
  readonly config: RunningConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly http: ProviderHttp;
}

/** The accounts at the partner. Its callback listens from the first login on, while one is pending. */
export function openPartner({ config, clock, logger, secrets, http }: PartnerDeps): PartnerService {
  const accounts = new PartnerAccounts(secrets.store);
  const oauth = new PartnerOAuth({ options: () => config.config, http, clock });
  const connections = new PartnerConnections({ oauth, accounts, clock });
  const attempts = new PartnerAttempts({
    oauth,
    connections,
    clock,
    randomBytes,
    callbackPort: () => config.config.partnerCallbackPort,
    onFailed: (connection, error) => logger.warn('a login at the partner failed', { connection }, error),
  });
  return new PartnerService({ attempts, connections, accounts });
}
