import { didYouMean, suggestion } from '../../lib/text/did-you-mean.ts';
import type { IndexConfig } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { AlgebraicConfig } from '../algebraic.ts';
import type { CheckedIndexConfig } from '../all-kinds.ts';
import type { FullTextConfig } from '../full-text.ts';
import type { CommonIndexConfig } from '../index-kind.ts';
import { artifactSourcesOf } from './artifact-sources.ts';
import { readEmbeddingsConfig } from './embeddings-config.ts';
import { readGraphConfig } from './graph-config.ts';
import { readIndexEnrichments } from './index-enrichments.ts';

/** Names of the indexes that every table has, one for each version of its schema. */
export const primaryIndexPrefix = 'full_text_index';

function primaryIndexName(schemaVersion: number): string {
  return `${primaryIndexPrefix}_v${schemaVersion}`;
}

const commonMembers = ['name', 'type', 'description', 'version', 'enrichments'];
const membersOf: Record<string, string[]> = {
  full_text: ['mem_only', 'source_artifact_name', 'artifact_name', 'sources'],
  embeddings: [
    'external',
    'sparse',
    'dimension',
    'field',
    'template',
    'embedder',
    'mem_only',
    'distance_metric',
    'chunker',
    'coverage_policy',
    'publication_policy',
    'summarizer',
    'top_k',
    'min_weight',
    'chunk_size',
    'source_artifact_name',
    'artifact_name',
    'sources',
  ],
  graph: [
    'ttl_duration',
    'edge_types',
    'max_edges_per_document',
    'summarizer',
    'template',
    'source',
    'artifact',
    'nodes',
    'edge',
    'context',
    'resolvers',
    'algebraic_planning',
    'mem_only',
  ],
  algebraic: ['derive_from_schema'],
};

/** The replacement of a primary index that was dropped. */
export function valuesIndexName(schemaVersion: number): string {
  return `${primaryIndexPrefix}_values_v${schemaVersion}`;
}

export function primaryIndexConfig(schemaVersion: number, name = primaryIndexName(schemaVersion)): FullTextConfig {
  return {
    name,
    type: 'full_text',
    description: '',
    version: schemaVersion,
    enrichments: [],
    mem_only: false,
  };
}

/** Checks the configuration of an index that a user adds under `name`. */
export function readIndexConfig(name: string, config: IndexConfig): CheckedIndexConfig {
  if (config.name !== undefined && config.name !== name) {
    throw new ServiceError('invalid_request', `"name" is "${config.name}" but the index is created as "${name}"`);
  }
  if (name.startsWith(primaryIndexPrefix)) {
    throw new ServiceError('invalid_name', `index names that begin with "${primaryIndexPrefix}" belong to the server`);
  }
  const type = config.type ?? inferType(config);
  refuseUnknownMembers(type, config);
  const common = {
    name,
    description: config.description ?? '',
    version: config.version ?? 0,
    enrichments: readIndexEnrichments(config.enrichments ?? []),
    mem_only: config.mem_only ?? false,
  };
  if (type === 'full_text') return readFullTextConfig(common, config);
  if (type === 'embeddings') return readEmbeddingsConfig(common, config);
  if (type === 'graph') return readGraphConfig(common, config);
  return readAlgebraicConfig(common, config);
}

function readFullTextConfig(common: CommonIndexConfig, config: IndexConfig): FullTextConfig {
  const artifacts = artifactSourcesOf(config);
  if (config.sources?.length === 0) {
    throw new ServiceError('invalid_request', '"sources" must name an enrichment; leave it out to index the documents');
  }
  if (new Set(artifacts).size < artifacts.length) {
    throw new ServiceError('invalid_request', '"sources" must name each enrichment once');
  }
  const sources = artifacts.map((artifact) => ({ artifact }));
  return { ...common, type: 'full_text', ...(sources.length > 0 && { sources }) };
}

function readAlgebraicConfig(common: CommonIndexConfig, config: IndexConfig): AlgebraicConfig {
  if (config.derive_from_schema === true) return { ...common, type: 'algebraic', derive_from_schema: true };
  const message = '"derive_from_schema" of an algebraic index must be true: it counts the scalars of the schema';
  throw new ServiceError('invalid_request', message);
}

function inferType(config: IndexConfig): string {
  const members = Object.keys(config);
  const ofEmbeddings = ['dimension', 'sparse', 'embedder', 'chunker', 'external', 'source_artifact_name'];
  if (ofEmbeddings.some((member) => members.includes(member))) {
    return 'embeddings';
  }
  const message = '"type" is missing: give "full_text", "embeddings", "graph" or "algebraic"';
  throw new ServiceError('invalid_request', message);
}

function refuseUnknownMembers(type: string, config: IndexConfig): void {
  const own = Object.hasOwn(membersOf, type) ? membersOf[type] : undefined;
  if (!own) {
    const known = Object.keys(membersOf);
    const hint = didYouMean(type, known);
    const advice = hint === undefined ? `use one of ${known.join(', ')}` : `did you mean "${hint}"?`;
    throw new ServiceError('invalid_request', `there is no index type "${type}"; ${advice}`);
  }
  const known = [...commonMembers, ...own];
  for (const member of Object.keys(config)) {
    if (known.includes(member)) continue;
    const message = `an index of type "${type}" has no member "${member}".${suggestion(member, known)}`;
    throw new ServiceError('invalid_request', message);
  }
}
