import { limits } from '../../config/limits.ts';
import { type CheckedIndexConfig, sourceArtifactsOf } from '../../index-kinds/all-kinds.ts';
import type { ArtifactConfig, ArtifactDefinition } from '../../index-kinds/configuration/artifact-config.ts';
import { unknownDimension } from '../../index-kinds/configuration/embeddings-config.ts';
import { isIndexedType } from '../../indexing/enrichment/artifact-texts.ts';
import { ServiceError } from '../../protocol/service-error.ts';

interface NamedIndex {
  readonly name: string;
  readonly config: CheckedIndexConfig;
}

/** Whether the next configuration of an enrichment can go on with the artifacts that are there. */
export function keepsArtifacts(before: ArtifactConfig, next: ArtifactConfig): boolean {
  return before.kind === next.kind && before.full_text_index === next.full_text_index;
}

/**
 * Checks enrichments against the others of their table, all of which `present` has. Throws `artifact_not_found` for a source
 * that is not there, `invalid_request` for one that cannot be one, `limit_exceeded`.
 */
export function checkArtifacts(added: readonly ArtifactConfig[], present: readonly ArtifactDefinition[]): void {
  const byName = new Map(present.map(({ name, config }) => [name, config]));
  for (const config of added) byName.set(config.name, config);
  if (byName.size > limits.artifactsPerTableMax) {
    throw new ServiceError('limit_exceeded', `a table has at most ${limits.artifactsPerTableMax} enrichments`);
  }
  for (const config of added) checkSources(config, byName);
  // One that has become of another kind may be the source of others.
  for (const config of byName.values()) checkSources(config, byName);
}

function checkSources(config: ArtifactConfig, byName: ReadonlyMap<string, ArtifactConfig>): void {
  const passed = new Set([config.name]);
  for (let at = config; at.source_artifact_name !== undefined; ) {
    const source = byName.get(at.source_artifact_name);
    if (source === undefined) {
      const message = `enrichment "${at.name}" is made from "${at.source_artifact_name}", which the table does not have`;
      throw new ServiceError('artifact_not_found', message);
    }
    if (source.kind === 'embedding') {
      throw refused(`enrichment "${at.name}" cannot be made from "${source.name}": nothing is made from an embedding`);
    }
    if (at.kind === 'chunk' && source.kind === 'chunk') {
      throw refused(`enrichment "${at.name}" cannot be made from "${source.name}": chunks are not cut again`);
    }
    if (passed.has(source.name)) throw refused(`enrichment "${source.name}" would be made from itself`);
    passed.add(source.name);
    at = source;
  }
}

/** Throws `enrichment_in_use` where an enrichment or an index that stays is made from one of the enrichments that go. */
export function checkUnused(
  gone: ReadonlySet<string>,
  present: readonly ArtifactDefinition[],
  staying: readonly NamedIndex[],
): void {
  for (const name of gone) refuseIndexOver(name, staying, 'dropped');
  const user = present.find(({ name, source }) => !gone.has(name) && source !== undefined && gone.has(source.name));
  if (!user) return;
  const message = `enrichment "${user.source?.name}" cannot be dropped: enrichment "${user.name}" is made from it`;
  throw new ServiceError('enrichment_in_use', message);
}

/** Throws `enrichment_in_use` where an index holds the vectors or the text of the enrichment, or makes its edges of it. */
export function refuseIndexOver(name: string, indexes: readonly NamedIndex[], what: 'dropped' | 'changed'): void {
  const index = indexes.find(({ config }) => sourceArtifactsOf(config).includes(name));
  if (!index) return;
  const { type } = index.config;
  const use = type === 'graph' ? 'makes its edges of it' : `holds its ${type === 'full_text' ? 'text' : 'vectors'}`;
  const message = `enrichment "${name}" cannot be ${what}: the index "${index.name}" ${use}; drop that first`;
  throw new ServiceError('enrichment_in_use', message);
}

/**
 * The configuration of an index over one of these enrichments, with the length of its vectors; any other as it is. Throws
 * `missing_embedding_artifact_enrichment` where there is none, `missing_embedding_artifact_producer` for one without
 * vectors, `artifact_not_found` where there is none to make edges of, and `invalid_request` for a length that is not theirs,
 * an enrichment that edges cannot be made of, and one whose text is to be searched and that is not there or has none.
 */
export function overArtifact(config: CheckedIndexConfig, artifacts: readonly ArtifactConfig[]): CheckedIndexConfig {
  if (config.type === 'full_text') {
    for (const name of sourceArtifactsOf(config)) checkHasText(name, artifacts);
    return config;
  }
  const [wanted] = sourceArtifactsOf(config);
  if (wanted === undefined) return config;
  const artifact = artifacts.find(({ name }) => name === wanted);
  if (!artifact) {
    if (config.type === 'graph') {
      const message = `"source.artifact": the table has no enrichment "${wanted.slice(0, 64)}"`;
      throw new ServiceError('artifact_not_found', message);
    }
    const message = `"source_artifact_name": the table has no enrichment "${wanted.slice(0, 64)}"`;
    throw new ServiceError('missing_embedding_artifact_enrichment', message);
  }
  if (config.type === 'graph') {
    if (artifact.kind === 'asset') return config;
    throw refused(`"source.artifact": "${wanted}" is of kind "${artifact.kind}"; edges are made of kind "asset"`);
  }
  if (config.type !== 'embeddings' || config.sparse) return config;
  const { kind, expected_dims: dimension } = artifact;
  if (kind !== 'embedding' || dimension === undefined) {
    const message = `"source_artifact_name": "${wanted}" is of kind "${kind}"; an index holds those of kind "embedding"`;
    throw new ServiceError('missing_embedding_artifact_producer', message);
  }
  if (config.dimension !== unknownDimension && config.dimension !== dimension) {
    throw refused(`"dimension" is ${config.dimension}, but enrichment "${wanted}" makes vectors of ${dimension}`);
  }
  return { ...config, dimension };
}

function checkHasText(name: string, artifacts: readonly ArtifactConfig[]): void {
  const artifact = artifacts.find((each) => each.name === name);
  if (!artifact) throw refused(`"sources": the table has no enrichment "${name.slice(0, 64)}"`);
  const { kind, content_type: type } = artifact;
  if (kind === 'embedding') throw refused(`"sources": "${name}" is of kind "embedding", which has no text`);
  if (type !== undefined && !isIndexedType(type)) {
    throw refused(`"sources": "${name}" makes "${type}", which has no text: text and JSON have`);
  }
}

/** Those of an index's enrichments that the table does not have yet. Throws `already_exists` where one differs. */
export function newAmong(
  declared: readonly ArtifactConfig[],
  present: readonly ArtifactDefinition[],
): ArtifactConfig[] {
  return declared.filter((config) => {
    const known = present.find(({ name }) => name === config.name);
    if (known && !Bun.deepEquals(known.config, config, true)) {
      const message = `the table has an enrichment "${config.name}" with another configuration; give this one another name`;
      throw new ServiceError('already_exists', message);
    }
    return !known;
  });
}

/** Throws `artifact_not_found` where an index names an enrichment that the table does not have. */
export function requireNamed(declared: readonly unknown[], present: readonly { readonly name: string }[]): void {
  const missing = declared.find((each) => typeof each === 'string' && !present.some(({ name }) => name === each));
  if (missing === undefined) return;
  throw new ServiceError('artifact_not_found', `"enrichments": the table has no enrichment "${missing}"`);
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
