import { limits } from '../../config/limits.ts';
import type { IndexConfig } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type ProviderConfig, readProviderConfig, shownProviderConfig } from '../../provider-config/provider-config.ts';
import { shownArtifact } from './artifact-config.ts';
import { type ChunkerConfig, readChunkerConfig } from './chunker-config.ts';
import type { IndexEnrichments } from './index-enrichments.ts';
import { rootedPath } from './rooted-path.ts';

/** The members of a configuration by which the server makes the vectors of an index itself. */
export interface ManagedMembers {
  /** Path of the text in a document, such as `$.title`; not used where there is a template. */
  field?: string;
  /** Handlebars over the whole document. */
  template?: string;
  /** As it was written: credentials are not expanded, and are left away where the configuration is shown. */
  embedder: Record<string, unknown>;
  /** Cuts the text into chunks with a vector each; as it was written. */
  chunker?: Record<string, unknown>;
}

export const coveragePolicies = ['strict', 'partial', 'best_effort'] as const;
export const publicationPolicies = ['progressive', 'atomic'] as const;

/** The policies of clients for indexes that are not complete. Kept and shown: every index works by the first of each. */
export type EmbeddingsPolicies = {
  coverage_policy?: (typeof coveragePolicies)[number];
  publication_policy?: (typeof publicationPolicies)[number];
};

/** The source of an index's vectors, and their embedder. */
export interface ManagedSource {
  field: string | undefined;
  template: string | undefined;
  embedder: ProviderConfig;
  /** Undefined where each text has one vector. */
  chunker?: ChunkerConfig | undefined;
  /** The chunks of a text are embedded in view of one another (late chunking). */
  together: boolean;
}

/**
 * Checks the members of a managed index. A template is compiled, and the embedder asked for the length of its vectors, by
 * whoever creates the index. Throws `invalid_request` and `unknown_provider`.
 */
export function readManagedMembers(config: IndexConfig): ManagedMembers {
  const { field, template, embedder, chunker } = config;
  const orExternal = 'or set "external" to true and write the vectors yourself';
  if (field === undefined && template === undefined) {
    throw refused(`give "field" or "template": what is to be embedded; ${orExternal}`);
  }
  if (embedder === undefined) throw refused(`"embedder" is missing: what makes the vectors; ${orExternal}`);
  readProviderConfig(embedder, 'embed', 'embedder');
  if (chunker !== undefined && readIndexChunker(chunker, embedder).together && config.sparse === true) {
    throw refused('"chunker.late" goes with dense vectors alone: leave it out, or set "sparse" to false');
  }
  if (template !== undefined && template.length > limits.templateCharsMax) {
    throw refused(`"template" may have ${limits.templateCharsMax} characters at most`);
  }
  return {
    ...(field === undefined ? {} : { field: rootedPath(field) }),
    ...(template === undefined ? {} : { template }),
    embedder,
    ...(chunker === undefined ? {} : { chunker }),
  };
}

/** The chunker of an index: the whole text has vectors, unless it says how many chunks are enough. */
function readIndexChunker(
  { late = false, ...chunker }: Record<string, unknown>,
  embedder: Record<string, unknown>,
): { chunker: ChunkerConfig; together: boolean } {
  const read = readChunkerConfig(chunker, 'chunker');
  if (typeof late !== 'boolean') throw refused('"chunker.late" must be true or false');
  const { provider, url } = readProviderConfig(embedder, 'embed', 'embedder');
  if (late && (provider !== 'service' || url !== undefined)) {
    throw refused(
      '"chunker.late" needs a model of this server: its "embedder" has the provider "service" and no "url"',
    );
  }
  if (late && read.by === 'tokens' && read.overlapTokens > 0) {
    throw refused('"chunker.late" goes with "overlap_tokens" of 0: its chunks see one another anyway');
  }
  return { chunker: read, together: late };
}

/** The source of a managed index; undefined for an external one. */
export function managedSourceOf(config: Partial<ManagedMembers>): ManagedSource | undefined {
  if (config.embedder === undefined) return undefined;
  const embedder = readProviderConfig(config.embedder, 'embed', 'embedder');
  const { field, template } = config;
  const { chunker, together = false } = config.chunker ? readIndexChunker(config.chunker, config.embedder) : {};
  return { field, template, embedder, chunker, together };
}

/** A configuration as it may be shown: without credentials. */
export function shownIndexConfig<Config extends object>(config: Config): Config {
  const { embedder, enrichments = [] } = config as Partial<ManagedMembers & { enrichments: IndexEnrichments }>;
  const shown = enrichments.map((each) => (typeof each === 'string' ? each : shownArtifact(each)));
  return {
    ...(embedder !== undefined && { publication_policy: publicationPolicies[0] }),
    ...config,
    ...(enrichments.length === 0 ? {} : { enrichments: shown }),
    ...(embedder === undefined ? {} : { embedder: shownProviderConfig(embedder) }),
  };
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
