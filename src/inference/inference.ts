import type { Clock } from '../lib/clock.ts';
import type { AvailableBackends } from '../model-host/available-backends.ts';
import type { ModelPool } from '../model-host/model-pool.ts';
import type { HostSettings } from '../model-host/model-spec.ts';
import type { ModelDownloads } from '../models/download/model-downloads.ts';
import type { ModelRegistry } from '../models/model-registry.ts';
import type { Admission } from './admission.ts';
import type { ChunkCache } from './chunking/chunk-cache.ts';
import type { GenerationMetrics } from './generation/generation-metrics.ts';
import type { MediaLoader } from './media/media-loader.ts';
import type { ChatTemplates } from './templates/chat-templates.ts';

/** The services of every route of the inference plane. */
export interface Inference {
  readonly registry: ModelRegistry;
  /** The models that requests name; one that can be fetched is fetched. */
  readonly models: ModelDownloads;
  readonly pool: ModelPool;
  readonly admission: Admission;
  readonly media: MediaLoader;
  readonly templates: ChatTemplates;
  readonly generations: GenerationMetrics;
  readonly settings: HostSettings;
  readonly backends: AvailableBackends;
  readonly allowDownloads: boolean;
  readonly chunkCache: ChunkCache;
  readonly clock: Clock;
}
