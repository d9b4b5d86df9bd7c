import type { Config } from '../../config/options.ts';
import type { WorkCounts } from '../../inference/admission.ts';
import type { Inference } from '../../inference/inference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import { Providers, thisServer } from '../../inference/providers/providers.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Secrets } from '../access/open-secrets.ts';

interface ProvidersDeps {
  readonly options: () => Config;
  readonly inference: Inference;
  readonly secrets: Pick<Secrets, 'credentials' | 'hosts'>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** The providers of models that tables, queries and connections may name: this server itself and others. */
export function openProviders({ options, inference, secrets, clock, metrics }: ProvidersDeps): Providers {
  const { credentials, hosts } = secrets;
  const providers = new Providers({
    own: new OwnProvider(inference),
    clock,
    credentials,
    hosts,
    entries: () => options().providers,
    random: () => (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32,
  });
  metrics.onCollect(() => {
    collect(metrics, providers);
    collectOwn(metrics, inference.admission.counts);
  });
  return providers;
}

const counters = [
  'providerRequests',
  'providerFailures',
  'providerRetries',
  'providerTokens',
  'providerWaits',
] as const;

function collect(metrics: Metrics, providers: Providers): void {
  for (const name of [...counters, 'providerWaited', 'providerBreaker'] as const) metrics.clear(name);
  for (const { provider, requests, failures, retries, tokens, waits, waitedMs, breaker } of providers.states) {
    const values = [requests, failures, retries, tokens, waits];
    for (const [at, name] of counters.entries()) metrics.increment(name, [provider], values[at]);
    metrics.increment('providerWaited', [provider], waitedMs / 1_000);
    metrics.set('providerBreaker', [provider], breaker === 'closed' ? 0 : 1);
  }
}

function collectOwn(metrics: Metrics, { requests, failures, tokens }: WorkCounts): void {
  if (requests === 0) return;
  metrics.increment('providerRequests', [thisServer], requests);
  metrics.increment('providerFailures', [thisServer], failures);
  metrics.increment('providerTokens', [thisServer], tokens);
}
