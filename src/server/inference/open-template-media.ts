import type { Config } from '../../config/options.ts';
import { TemplateMedia } from '../../enrichment/media/template-media.ts';
import type { Inference } from '../../inference/inference.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Secrets } from '../access/open-secrets.ts';
import { openMediaFetcher, openObjectFetcher } from './open-inference.ts';

interface TemplateMediaDeps {
  readonly options: () => Config;
  readonly inference: Inference;
  readonly secrets: Pick<Secrets, 'credentials'>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** Reads what templates name as `media`, within the same bounds as the media of requests to models. */
export function openTemplateMedia({ options, inference, secrets, clock, metrics }: TemplateMediaDeps): TemplateMedia {
  const config = options();
  const { pool, settings } = inference;
  return new TemplateMedia({
    bounds: {
      downloadBytesMax: config.mediaBytesMax,
      concurrentMax: config.inferenceConcurrency,
      edgeMax: config.imageEdgeMax,
    },
    fetcher: openMediaFetcher(config, clock, metrics),
    trustedFetcher: openObjectFetcher(config, clock, metrics),
    pool,
    settings,
    credentials: secrets.credentials,
    connections: () => options().connections,
    paths: () => options().mediaPaths,
  });
}
