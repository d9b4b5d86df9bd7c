import { limits } from '../config/limits.ts';
import { suggestion } from '../lib/did-you-mean.ts';
import type { IndexConfig } from '../protocol/database/tables.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { type DenseConfig, type DistanceMetric, distanceMetrics } from './dense.ts';
import { textLegName } from './full-text.ts';
import type { CommonIndexConfig } from './index-kind.ts';
import type { SparseConfig } from './sparse.ts';

type EmbeddingsConfig = DenseConfig | SparseConfig;

/** Members by which the server would make the vectors itself. */
const managedMembers = ['field', 'template', 'embedder', 'chunker'] as const;
const sparseMembers = ['top_k', 'min_weight', 'chunk_size'] as const;

/** Those that the interface names: the service's own models, models of the machine, hosted and cloud ones. */
const embedderProviders = 'service antfly ollama openai gemini openrouter cohere bedrock vertex mock'.split(' ');

/** Checks what is particular to an embeddings index; the types of the members have been checked before. */
export function readEmbeddingsConfig(common: CommonIndexConfig, config: IndexConfig): EmbeddingsConfig {
  if (common.name === textLegName) {
    const message = `"${textLegName}" is what queries call their search for text; give the index another name`;
    throw new ServiceError('invalid_name', message);
  }
  if ('summarizer' in config) {
    throw refused(
      'an embeddings index takes no `summarizer`; write the summary into a member of the document and index that',
    );
  }
  if (config.external !== true) throw refuseManaged(config);
  for (const member of managedMembers) {
    if (config[member] === undefined) continue;
    throw refused(`an index with \`external\` takes its vectors from \`_embeddings\`: leave \`${member}\` out`);
  }
  return config.sparse === true ? readSparse(common, config) : readDense(common, config);
}

function readDense(common: CommonIndexConfig, config: IndexConfig): DenseConfig {
  for (const member of sparseMembers) {
    if (config[member] === undefined) continue;
    throw refused(`\`${member}\` belongs to sparse indexes: set \`sparse\` to true, or leave it out`);
  }
  const { dimension } = config;
  if (dimension === undefined) {
    throw refused('`dimension` is missing: an external index of dense vectors needs the length of its vectors');
  }
  if (!isIntegerWithin(dimension, 1, limits.vectorDimensionMax)) {
    throw refused(`\`dimension\` must be an integer from 1 to ${limits.vectorDimensionMax}`);
  }
  return {
    ...common,
    type: 'embeddings',
    external: true,
    sparse: false,
    dimension,
    distance_metric: readMetric(config.distance_metric ?? 'l2_squared'),
  };
}

function readMetric(value: string): DistanceMetric {
  const metric = distanceMetrics.find((known) => known === value);
  if (metric === undefined) throw refused(`\`distance_metric\` must be one of ${distanceMetrics.join(', ')}`);
  return metric;
}

function readSparse(common: CommonIndexConfig, config: IndexConfig): SparseConfig {
  if (config.distance_metric !== undefined && config.distance_metric !== 'inner_product') {
    throw refused('a sparse index scores by the dot product: leave `distance_metric` out');
  }
  const { top_k = 10, min_weight = 0, chunk_size = 1024 } = config;
  if (!isIntegerWithin(top_k, 1, limits.queryLimitMax)) {
    throw refused(`\`top_k\` must be an integer from 1 to ${limits.queryLimitMax}`);
  }
  if (!(min_weight >= 0 && Number.isFinite(Math.fround(min_weight)))) {
    throw refused('`min_weight` must be a number of at least 0 that 32 bits can hold');
  }
  if (!isIntegerWithin(chunk_size, 64, limits.sparseChunkMax)) {
    throw refused(`\`chunk_size\` must be an integer from 64 to ${limits.sparseChunkMax}`);
  }
  return { ...common, type: 'embeddings', external: true, sparse: true, top_k, min_weight, chunk_size };
}

/** Why this is not the configuration of an index whose vectors the server makes; such indexes are still to come. */
function refuseManaged(config: IndexConfig): ServiceError {
  if (config.sparse === true) {
    return refused('a sparse index takes its vectors from `_embeddings`: set `external` to true');
  }
  const orExternal = 'or set `external` to true and write the vectors yourself';
  if (config.field === undefined && config.template === undefined) {
    return refused(`give \`field\` or \`template\`: what is to be embedded; ${orExternal}`);
  }
  if (config.embedder === undefined) return refused(`\`embedder\` is missing: what makes the vectors; ${orExternal}`);
  if (typeof config.embedder.provider !== 'string' || config.embedder.provider === '') {
    return refused('`embedder` must name its `provider`');
  }
  const { provider } = config.embedder;
  if (!embedderProviders.includes(provider)) {
    const known = embedderProviders.filter((name) => name !== 'antfly').join(', ');
    const hint = suggestion(provider, embedderProviders);
    return refused(`there is no provider of embedders "${provider.slice(0, 64)}", but ${known}.${hint}`);
  }
  if (config.dimension !== undefined && !isIntegerWithin(config.dimension, 1, limits.vectorDimensionMax)) {
    return refused(`\`dimension\` must be an integer from 1 to ${limits.vectorDimensionMax}`);
  }
  return new ServiceError('not_implemented', `embedders are not built yet; ${orExternal}`);
}

function isIntegerWithin(value: number, least: number, greatest: number): boolean {
  return Number.isInteger(value) && value >= least && value <= greatest;
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
