import type { TableSchema } from '../protocol/database/tables.ts';
import { type AlgebraicConfig, type AlgebraicDefinition, algebraic, countedPaths } from './algebraic.ts';
import { type DenseConfig, type DenseDefinition, dense } from './dense.ts';
import { type FullTextConfig, type FullTextDefinition, fullText } from './full-text.ts';
import { type GraphConfig, type GraphDefinition, graph } from './graph.ts';
import type { CommonDefinition, CommonIndexConfig, Identity, IndexKind, WrittenVectors } from './index-kind.ts';
import { type SparseConfig, type SparseDefinition, sparse } from './sparse.ts';

/** A checked configuration, with every member filled. */
export type CheckedIndexConfig = FullTextConfig | DenseConfig | SparseConfig | GraphConfig | AlgebraicConfig;

/** An index of a table, whatever it holds: everything by which it is opened, fed, written to and searched. */
export type IndexDefinition =
  | FullTextDefinition
  | DenseDefinition
  | SparseDefinition
  | GraphDefinition
  | AlgebraicDefinition;

/** An index that is searched by vectors. */
export type VectorIndexDefinition = DenseDefinition | SparseDefinition;

export type IndexKindName = IndexDefinition['kind'];

const kinds = { full_text: fullText, dense, sparse, graph, algebraic };

type AnyKind<Definition extends CommonDefinition> = IndexKind<CommonIndexConfig, Definition>;

/** The kind of an index. */
export function kindOf<Definition extends IndexDefinition>({ kind }: Definition): AnyKind<Definition> {
  // Each kind takes its own definitions, which the compiler cannot follow through the table.
  return kinds[kind] as unknown as AnyKind<Definition>;
}

/** The definition of an index of this configuration. `schema` maps the fields of full text. */
export function defineIndex(
  identity: Identity,
  config: CheckedIndexConfig,
  schema: TableSchema | undefined,
): IndexDefinition {
  return kindOfConfig(config).define(identity, config, schema);
}

/** The kind of an index of this configuration. */
export function kindOfConfig(config: CheckedIndexConfig): IndexKind<CheckedIndexConfig, IndexDefinition> {
  const kind = config.type === 'embeddings' ? (config.sparse ? sparse : dense) : kinds[config.type];
  return kind as unknown as IndexKind<CheckedIndexConfig, IndexDefinition>;
}

/**
 * The enrichments that an index of this configuration is made of: it holds
 * their vectors or texts, or makes its edges of them.
 */
export function sourceArtifactsOf(config: CheckedIndexConfig): readonly string[] {
  if (config.type === 'full_text') return (config.sources ?? []).map(({ artifact }) => artifact);
  const only = config.type === 'graph' ? config.source?.artifact : vectorArtifactOf(config);
  return only === undefined ? [] : [only];
}

function vectorArtifactOf(config: CheckedIndexConfig): string | undefined {
  return config.type === 'embeddings' && !config.sparse ? config.source_artifact_name : undefined;
}

/** The definition as the engine reads it. `isLoaded`: nobody searches it before it has all of its rows. */
export function definitionJson(definition: IndexDefinition, isLoaded = false): string {
  const { name, incarnation, memOnly } = definition;
  const kind = kindOf(definition);
  const common = { name, incarnation: String(incarnation), mem_only: memOnly };
  const ofLoad = isLoaded ? kind.nativeOptionsOfLoad : {};
  return JSON.stringify({ ...common, ...kind.nativeOptions(definition), ...ofLoad });
}

/** The part id of an index; undefined for one that follows documents. */
export function partIdOf(definition: IndexDefinition): number | undefined {
  return kindOf(definition).follows === 'parts' ? definition.partId : undefined;
}

/** The requirements on the vectors or edges that a write gives for this index. */
export function writtenVectorsOf(definition: IndexDefinition): WrittenVectors {
  const { name, partId: id } = definition;
  return { name, id, ...kindOf(definition).writtenVectors(definition) };
}

/** The schema by which an index maps the fields of documents; undefined for one of vectors. */
export function mappedSchemaOf(definition: IndexDefinition): TableSchema | undefined {
  return definition.kind === 'full_text' ? definition.schema : undefined;
}

/** The graph indexes among these. */
export function graphsAmong(definitions: readonly IndexDefinition[]): GraphDefinition[] {
  return definitions.filter((definition) => definition.kind === 'graph');
}

/** Whether the index is kept by the table's text index, and has nothing of its own. */
export function isKeptByText(definition: IndexDefinition): boolean {
  return kindOf(definition).follows === 'text_index';
}

/** Paths of which counters are kept for aggregations; undefined for a table without an algebraic index. */
export function countedPathsOf(
  definitions: readonly IndexDefinition[],
  schema: TableSchema,
): readonly string[] | undefined {
  return definitions.some(({ kind }) => kind === 'algebraic') ? countedPaths(schema) : undefined;
}

/** Whether the index is searched by vectors. */
export function isVectorIndex(definition: IndexDefinition): definition is VectorIndexDefinition {
  return kindOf(definition).vectorSearch !== undefined;
}
