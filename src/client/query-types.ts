import type { Static } from '@sinclair/typebox';
import type { queryHit, queryRequest, queryResult } from '../protocol/database/query.ts';
import type { ScanRequest } from '../protocol/database/writes.ts';
import type { FieldPath, QueryField } from './document-types.ts';

type Scalar = string | number | boolean;
type ByField<Field extends string, Value> = { readonly [Name in Field]?: Value };
interface Boosted {
  readonly boost?: number;
}

/** A leaf of either spelling: `{"term": "x", "field": "f"}` or `{"term": {"f": "x"}}`. */
type Leaf<Name extends string, Field extends string, Value, Options = unknown> =
  | ({ readonly [N in Name]: Value } & { readonly field?: Field } & Options & Boosted)
  | { readonly [N in Name]: ByField<Field, Value> };

interface Bounds {
  readonly gt?: number | string;
  readonly gte?: number | string;
  readonly lt?: number | string;
  readonly lte?: number | string;
}

interface BooleanMembers<Field extends string> {
  readonly must?: QueryNodes<Field>;
  readonly should?: QueryNodes<Field>;
  readonly must_not?: QueryNodes<Field>;
  readonly filter?: QueryNodes<Field>;
  readonly minimum_should_match?: number;
}

interface Fuzziness {
  readonly fuzziness?: number | 'auto';
  readonly prefix_length?: number;
}

/** A query node over these fields. A query string (`{"query": "title:soup"}`) names its fields inside. */
export type QueryNode<Field extends string> =
  | ({ readonly query: string } & Boosted)
  | Leaf<'match', Field, string, Fuzziness & { readonly operator?: 'or' | 'and'; readonly analyzer?: string }>
  | Leaf<'match_phrase', Field, string, { readonly slop?: number; readonly analyzer?: string }>
  | ({
      readonly multi_match: { readonly query: string; readonly type: 'bool_prefix'; readonly fields: readonly Field[] };
    } & Boosted)
  | Leaf<'term', Field, Scalar, Fuzziness>
  | { readonly terms: ByField<Field, readonly Scalar[]> }
  | Leaf<'prefix' | 'wildcard' | 'regexp', Field, string>
  | Leaf<'fuzzy', Field, string, Fuzziness>
  | Leaf<'cidr', Field, string>
  | { readonly range: ByField<Field, Bounds> }
  | ({ readonly field: Field; readonly min?: number | string; readonly max?: number | string } & Boosted)
  | ({ readonly field: Field; readonly start?: string; readonly end?: string } & Boosted)
  | { readonly exists: { readonly field: Field } }
  | { readonly ids: readonly string[] }
  | { readonly geo_distance: ByField<Field, unknown> | { readonly distance: string; readonly field: Field } }
  | { readonly match_all: object }
  | { readonly match_none: object }
  | { readonly ref: string }
  | { readonly conjuncts: readonly QueryNode<Field>[] }
  | { readonly disjuncts: readonly QueryNode<Field>[]; readonly min?: number }
  | ({ readonly bool: BooleanMembers<Field> } & Boosted)
  | (BooleanMembers<Field> & Boosted);

export type QueryNodes<Field extends string> = QueryNode<Field> | readonly QueryNode<Field>[];

type WireQuery = Static<typeof queryRequest>;
type NodeMembers = 'full_text_search' | 'query' | 'filter_query' | 'exclusion_query';

interface OrderBy<Field extends string> {
  readonly field: Field | '_score';
  readonly desc?: boolean;
}

/**
 * The fields that a query shows and orders by: with a join also fields of the joined
 * tables, `TABLE.FIELD`, whose documents have no type here.
 */
type ShownMembers<Document> =
  | {
      readonly join?: never;
      readonly fields?: readonly FieldPath<Document>[];
      readonly order_by?: readonly OrderBy<QueryField<Document>>[];
    }
  | {
      readonly join: NonNullable<WireQuery['join']>;
      readonly fields?: readonly (FieldPath<Document> | JoinedField)[];
      readonly order_by?: readonly OrderBy<QueryField<Document> | JoinedField>[];
    };

type JoinedField = `${string}.${string}`;

/** A query of one table, as `POST /db/v1/query` takes it, with the fields of its documents. */
export type Query<Document> = Readonly<
  Omit<WireQuery, NodeMembers | 'table' | 'fields' | 'order_by' | 'join' | 'with'>
> & {
  readonly [Member in NodeMembers]?: QueryNodes<QueryField<Document>>;
} & {
  readonly with?: Readonly<Record<string, QueryNodes<QueryField<Document>>>>;
} & ShownMembers<Document>;

/** `Omit` of each form of a query: of both together it would let a query without a join name fields of one. */
export type Without<Form, Member extends string> = Form extends unknown ? Omit<Form, Member> : never;

export type Hit<Document> = Omit<Static<typeof queryHit>, '_source'> & { readonly _source?: Partial<Document> };

/** The answer to one query. */
export type QueryResult<Document> = Omit<Static<typeof queryResult>, 'hits'> & {
  readonly hits: Omit<NonNullable<Static<typeof queryResult>['hits']>, 'hits'> & { readonly hits: Hit<Document>[] };
};

/** Keys after `from` up to `to`; `inclusive_from` and `exclusive_to` say otherwise. Whole documents unless `fields` says. */
export type Scan<Document> = Omit<Partial<ScanRequest>, 'fields' | 'filter_query' | 'single_key'> & {
  readonly fields?: readonly FieldPath<Document>[];
  readonly filter_query?: QueryNode<QueryField<Document>>;
};
