import { limits } from '../../config/limits.ts';
import type { IndexConfig } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type DenseConfig, type DistanceMetric, distanceMetrics } from '../dense.ts';
import { textLegName } from '../full-text.ts';
import type { CommonIndexConfig } from '../index-kind.ts';
import type { SparseConfig } from '../sparse.ts';
import { artifactSourcesOf } from './artifact-sources.ts';
import {
  coveragePolicies,
  type EmbeddingsPolicies,
  type ManagedMembers,
  publicationPolicies,
  readManagedMembers,
} from './managed-source.ts';

type EmbeddingsConfig = DenseConfig | SparseConfig;
/** Where vectors come from that are not written with the documents. */
type VectorSource = ManagedMembers | Required<Pick<DenseConfig, 'source_artifact_name'>>;

/** Members by which the server would make the vectors itself. */
const managedMembers = ['field', 'template', 'embedder', 'chunker'] as const;
const sparseMembers = ['top_k', 'min_weight', 'chunk_size'] as const;

/** Of a managed index of which nobody has said the length of its vectors: its creation asks the embedder. */
export const unknownDimension = 0;

/** Checks what is particular to an embeddings index; the types of the members have been checked before. */
export function readEmbeddingsConfig(common: CommonIndexConfig, config: IndexConfig): EmbeddingsConfig {
  if (common.name === textLegName) {
    const message = `"${textLegName}" is what queries call their search for text; give the index another name`;
    throw new ServiceError('invalid_name', message);
  }
  if ('summarizer' in config) {
    throw refused(
      'an embeddings index takes no "summarizer"; write the summary into a member of the document and index that',
    );
  }
  const artifact = readArtifactSource(config);
  if (artifact !== undefined) return readOverArtifact(common, config, artifact);
  const managed = config.external === true ? undefined : readManagedMembers(config);
  for (const member of managedMembers) {
    if (managed || config[member] === undefined) continue;
    throw refused(`an index with "external" takes its vectors from "_embeddings": leave "${member}" out`);
  }
  return config.sparse === true ? readSparse(common, config, managed) : readDense(common, config, managed);
}

function readPolicies(config: IndexConfig): EmbeddingsPolicies {
  const coverage = readOneOf('coverage_policy', config.coverage_policy, coveragePolicies);
  const publication = readOneOf('publication_policy', config.publication_policy, publicationPolicies);
  return {
    ...(coverage !== undefined && { coverage_policy: coverage }),
    ...(publication !== undefined && { publication_policy: publication }),
  };
}

function readOneOf<Name extends string>(member: string, value: string | undefined, names: readonly Name[]) {
  const known = names.find((name) => name === value);
  if (value !== undefined && known === undefined) throw refused(`"${member}" must be one of ${names.join(', ')}`);
  return known;
}

/** The enrichment whose vectors the index holds. */
function readArtifactSource(config: IndexConfig): string | undefined {
  const [artifact, ...more] = artifactSourcesOf(config);
  if (more.length > 0 || (config.sources && artifact === undefined)) {
    throw refused('an index holds the vectors of one enrichment: name it once, as "source_artifact_name"');
  }
  return artifact;
}

/** The embedder, and the length of the vectors, are those of the enrichment, which whoever creates the index looks up. */
function readOverArtifact(common: CommonIndexConfig, config: IndexConfig, artifact: string): DenseConfig {
  for (const member of managedMembers) {
    if (config[member] === undefined) continue;
    throw refused(`an index over an enrichment takes its vectors from there: leave "${member}" out`);
  }
  if (config.external === true || config.sparse === true) {
    const member = config.external === true ? 'external' : 'sparse';
    throw refused(`an index over an enrichment has its dense vectors: leave "${member}" out`);
  }
  return readDense(common, config, { source_artifact_name: artifact });
}

function readDense(common: CommonIndexConfig, config: IndexConfig, managed: VectorSource | undefined): DenseConfig {
  for (const member of sparseMembers) {
    if (config[member] === undefined) continue;
    throw refused(`"${member}" belongs to sparse indexes: set "sparse" to true, or leave it out`);
  }
  if (config.dimension === undefined && managed === undefined) {
    throw refused('"dimension" is missing: an external index of dense vectors needs the length of its vectors');
  }
  if (config.dimension !== undefined && !isIntegerWithin(config.dimension, 1, limits.vectorDimensionMax)) {
    throw refused(`"dimension" must be an integer from 1 to ${limits.vectorDimensionMax}`);
  }
  // The embedder of a managed index tells.
  const dimension = config.dimension ?? unknownDimension;
  return {
    ...common,
    type: 'embeddings',
    external: managed === undefined,
    sparse: false,
    ...managed,
    ...readPolicies(config),
    dimension,
    distance_metric: readMetric(config.distance_metric ?? 'l2_squared'),
  };
}

function readMetric(value: string): DistanceMetric {
  const metric = distanceMetrics.find((known) => known === value);
  if (metric === undefined) throw refused(`"distance_metric" must be one of ${distanceMetrics.join(', ')}`);
  return metric;
}

function readSparse(common: CommonIndexConfig, config: IndexConfig, managed: ManagedMembers | undefined): SparseConfig {
  if (config.distance_metric !== undefined && config.distance_metric !== 'inner_product') {
    throw refused('a sparse index scores by the dot product: leave "distance_metric" out');
  }
  const { top_k = 10, min_weight = 0, chunk_size = 1024 } = config;
  if (!isIntegerWithin(top_k, 1, limits.queryLimitMax)) {
    throw refused(`"top_k" must be an integer from 1 to ${limits.queryLimitMax}`);
  }
  if (!(min_weight >= 0 && Number.isFinite(Math.fround(min_weight)))) {
    throw refused('"min_weight" must be a number of at least 0 that 32 bits can hold');
  }
  if (!isIntegerWithin(chunk_size, 64, limits.sparseChunkMax)) {
    throw refused(`"chunk_size" must be an integer from 64 to ${limits.sparseChunkMax}`);
  }
  const external = managed === undefined;
  const policies = readPolicies(config);
  return {
    ...common,
    type: 'embeddings',
    external,
    sparse: true,
    ...managed,
    ...policies,
    top_k,
    min_weight,
    chunk_size,
  };
}

function isIntegerWithin(value: number, least: number, greatest: number): boolean {
  return Number.isInteger(value) && value >= least && value <= greatest;
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
