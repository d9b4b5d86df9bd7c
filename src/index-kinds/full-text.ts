import type { TableSchema } from '../protocol/database/tables.ts';
import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

/** The name of the text search in queries; no index of vectors may be named so. */
export const textLegName = 'full_text';

/** A checked configuration of a full-text index. */
export type FullTextConfig = CommonIndexConfig & {
  type: 'full_text';
  /** The enrichments whose texts it is searched for; undefined where those are the texts of the documents. */
  sources?: readonly { readonly artifact: string }[];
};

export interface FullTextDefinition extends CommonDefinition {
  kind: 'full_text';
  /** The schema that maps its fields, in its wire form. */
  schema: TableSchema | undefined;
  /** The enrichments whose texts it is searched for; undefined where those are the texts of the documents. */
  artifacts?: readonly string[] | undefined;
}

export const fullText: IndexKind<FullTextConfig, FullTextDefinition> = {
  kind: 'full_text',
  follows: 'documents',
  define: (identity, { sources }, schema) => {
    const artifacts = sources?.map(({ artifact }) => artifact);
    return { ...identity, kind: 'full_text', schema, artifacts };
  },
  shapeOf: () => undefined,
  nativeOptions: ({ schema }) => ({ type: 'full_text', schema: schema ?? null }),
  writtenVectors: () => ({ kind: 'full_text' }),
  counts: countsOfDocuments,
};
