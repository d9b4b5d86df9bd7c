import type { TableSchema } from '../protocol/database/tables.ts';
import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

/** A checked configuration of an algebraic index: it counts the scalars that the table's schema declares. */
export type AlgebraicConfig = CommonIndexConfig & { type: 'algebraic'; derive_from_schema: true };

export interface AlgebraicDefinition extends CommonDefinition {
  kind: 'algebraic';
}

/** Its counters are those of the text index's segments: it has no files, and is as far as that index. */
export const algebraic: IndexKind<AlgebraicConfig, AlgebraicDefinition> = {
  kind: 'algebraic',
  follows: 'text_index',
  define: (identity) => ({ ...identity, kind: 'algebraic' }),
  shapeOf: () => undefined,
  nativeOptions: () => ({}),
  writtenVectors: () => ({ kind: 'full_text' }),
  counts: countsOfDocuments,
};

const scalarTypes = ['string', 'number', 'integer', 'boolean'];
const known = new WeakMap<TableSchema, readonly string[]>();

/** Dotted paths of the scalars that a schema declares, those in objects and arrays too. A `$ref` is not followed. */
export function countedPaths(schema: TableSchema): readonly string[] {
  const found = known.get(schema);
  if (found) return found;
  const paths = new Set<string>();
  for (const { schema: declared } of Object.values(schema.document_schemas ?? {})) addPaths(declared, '', paths);
  const sorted = [...paths].sort();
  known.set(schema, sorted);
  return sorted;
}

function addPaths(declared: unknown, path: string, paths: Set<string>): void {
  if (typeof declared !== 'object' || declared === null) return;
  const { type, properties, items } = declared as { type?: unknown; properties?: unknown; items?: unknown };
  if (path !== '' && [type].flat().some((each) => scalarTypes.includes(each as string))) paths.add(path);
  addPaths(items, path, paths);
  for (const [name, property] of Object.entries(properties ?? {})) {
    addPaths(property, path === '' ? name : `${path}.${name}`, paths);
  }
}
