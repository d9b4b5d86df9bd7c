import {
  type ArtifactConfig,
  type ArtifactDefinition,
  chunkerOf,
  embedderConfigOf,
  executionOf,
} from '../../index-kinds/configuration/artifact-config.ts';
import { isMembers } from '../../index-kinds/configuration/chunker-config.ts';
import type { SliceBounds } from '../../lib/concurrency/slices-within.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { shownProviderConfig } from '../../provider-config/provider-config.ts';
import { modelCutter } from '../chunking/cut-by-model.ts';
import type { PartSource } from '../derive-source.ts';
import type { FindModels } from '../find-models.ts';
import type { FollowedPart } from '../following/followed-part.ts';
import { readProducer } from '../producers/read-producer.ts';
import { followedArtifact } from './artifact-batch.ts';
import { assetMaker } from './asset-maker.ts';
import { chunkMaker } from './chunk-maker.ts';
import type { PartMaker } from './part-maker.ts';
import { vectorSetMaker } from './vector-maker.ts';

interface Maker {
  readonly make: PartMaker;
  readonly media: PartSource['media'];
}

/** The producer of the artifacts of an enrichment. Throws `invalid_request` and `unknown_provider`. */
export function artifactPart({ partId, config, source }: ArtifactDefinition, find: FindModels): FollowedPart {
  const { make, media } = makerOf(config, find);
  const { template, field } = config;
  const makerFingerprint = JSON.stringify([config.kind, makerTraits(config)]);
  return followedArtifact({
    partId,
    source: { template, field, artifact: source?.partId, media },
    make,
    makerFingerprint,
    fingerprint: JSON.stringify([makerFingerprint, template ?? null, field ?? null, source?.partId ?? null]),
    batch: boundsOf(config),
  });
}

function makerOf(config: ArtifactConfig, { embedderOf, providerOf }: FindModels): Maker {
  switch (config.kind) {
    case 'chunk':
      return { make: chunkMaker(chunkerOf(config), modelCutter(providerOf)), media: undefined };
    case 'embedding': {
      const embedder = embedderConfigOf(config);
      const make = vectorSetMaker(() => embedderOf(embedder), config.expected_dims ?? 0, {
        fingerprint: JSON.stringify(makerTraits(config)),
        request: boundsOf(config),
      });
      return { make, media: undefined };
    }
    case 'asset': {
      const { produce, readsMedia } = readProducer(config.producer_json, config.content_type, providerOf);
      return { make: assetMaker(() => produce), media: readsMedia ? 'named' : 'taken' };
    }
    default:
      throw ofLaterRelease(config);
  }
}

/** New ones are checked: this one stands in the catalog. */
function ofLaterRelease({ name, kind }: { readonly name: string; readonly kind: string }): ServiceError {
  const unknown = `the enrichment "${name}" is of kind "${kind}", which this release does not know`;
  return new ServiceError('data_corrupted', `${unknown}: start the release that made it, or a later one`);
}

function boundsOf(config: ArtifactConfig): SliceBounds {
  const { batch_items: items, batch_bytes: bytes } = executionOf(config);
  return { items, bytes };
}

/** Everything that artifacts depend on: never a key or an address. */
function makerTraits(config: ArtifactConfig): unknown {
  if (config.kind === 'chunk') return chunkerOf(config);
  if (config.kind === 'embedding') {
    const { provider, model, dimensions } = embedderConfigOf(config);
    return [provider, model, dimensions ?? null, config.expected_dims ?? 0];
  }
  const { producer_json: given } = config;
  const form = typeof given === 'string' ? parsed(given) : (given ?? { type: 'copy' });
  if (!isMembers(form) || !isMembers(form.config)) return [form, config.content_type ?? null];
  const { url: _url, api_url: _api, ...shown } = shownProviderConfig(form.config);
  return [form.type, shown, config.content_type ?? null];
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw refused('"producer_json" is not JSON');
  }
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
