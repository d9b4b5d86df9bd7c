import { Type } from '@sinclair/typebox';
import { graphResult } from './graphs.ts';
import { jsonObject } from './tables.ts';

/** A query node, or an array of nodes that must all match. What a node may be is read by `src/query`. */
export const queryNode = Type.Union([jsonObject, Type.Array(jsonObject)], {
  description: 'A query node such as {"query": "title:soup AND year:>2020"}, or an array of nodes that must all match.',
});

export const orderBy = Type.Object({
  field: Type.String({ description: 'Dotted path of a scalar, _id or _score.' }),
  desc: Type.Optional(Type.Boolean({ default: false })),
});

export const aggregationMap = Type.Record(Type.String(), jsonObject, {
  description:
    'Names of aggregations over all matches, such as {"by_tag": {"type": "terms", "field": "tag"}}. ' +
    'Types: sum, avg, min, max, count, sumsquares, stats, cardinality; with buckets and `sub_aggregations`: terms, ' +
    'range, date_range, histogram, date_histogram, geohash_grid, geo_distance, significant_terms.',
});

export const highlight = Type.Object({
  fields: Type.Optional(
    Type.Array(Type.String(), { description: 'Paths; all that the query asks about when absent.' }),
  ),
  fragment_chars: Type.Optional(Type.Integer({ minimum: 20, maximum: 2_000, default: 150 })),
  fragments: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, default: 3 })),
  pre_tag: Type.Optional(Type.String({ default: '<em>' })),
  post_tag: Type.Optional(Type.String({ default: '</em>' })),
});

const queryVector = Type.Union(
  [
    Type.Array(Type.Number()),
    Type.String({ contentEncoding: 'base64', description: 'float32 values, little-endian' }),
    Type.Object({ indices: Type.Array(Type.Integer({ minimum: 0 })), values: Type.Array(Type.Number()) }),
    Type.Object({
      packed_indices: Type.String({ contentEncoding: 'base64', description: 'uint32 values, little-endian' }),
      packed_values: Type.String({ contentEncoding: 'base64', description: 'float32 values, little-endian' }),
    }),
    Type.Record(Type.String({ pattern: '^[0-9]+$' }), Type.Number(), { description: 'Weights by token.' }),
  ],
  { description: 'A dense vector as an array or packed; a sparse one as indices with values or by token.' },
);

export const mergeConfig = Type.Object({
  strategy: Type.Optional(
    Type.Union([Type.Literal('rrf'), Type.Literal('rsf'), Type.Literal('failover')], {
      default: 'rrf',
      description:
        'rrf: sum of weight / (rank_constant + rank). rsf: weighted sum of scores, scaled to 0..1 within the window. ' +
        'failover: the text search only where the vector searches find nothing, or the text cannot be embedded.',
    }),
  ),
  weights: Type.Optional(
    Type.Record(Type.String(), Type.Number({ minimum: 0 }), { description: '`full_text` or an index; 1 when absent.' }),
  ),
  rank_constant: Type.Optional(Type.Number({ exclusiveMinimum: 0, default: 60 })),
  window_size: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000,
      description: 'Best hits of each search to merge; `limit` when absent.',
    }),
  ),
});

export const pruner = Type.Object(
  {
    require_multi_index: Type.Optional(Type.Boolean({ description: 'Keep what two searches or more have found.' })),
    min_absolute_score: Type.Optional(Type.Number()),
    min_score_ratio: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'Of the best score.' })),
    std_dev_threshold: Type.Optional(
      Type.Number({ minimum: 0, description: 'Standard deviations below the mean score that are still kept.' }),
    ),
    max_score_gap_percent: Type.Optional(
      Type.Number({ minimum: 0, maximum: 100, description: 'Cut at the first gap that is a larger part of the span.' }),
    ),
  },
  { description: 'What is cut off the merged hits of a search by `embeddings`; rules apply in this order.' },
);

export const reranker = Type.Object(
  {
    provider: Type.String({ description: '`service`: this server, or the one at `url`; or a hosted one.' }),
    model: Type.String(),
    field: Type.Optional(Type.String({ description: 'Path of the text of a document that is compared.' })),
    template: Type.Optional(Type.String({ description: 'Handlebars over the document, instead of `field`.' })),
    url: Type.Optional(Type.String()),
    api_key: Type.Optional(Type.String({ description: 'A key, or `${secret:name}` for who may change the table.' })),
    top_n: Type.Optional(Type.Integer({ minimum: 1, description: 'Hits that are left.' })),
  },
  {
    description:
      'A model that scores the best hits once more, reading the query beside each document: `limit` and `offset` hits, or as ' +
      'many as `window_size` says. Its score replaces `_score`, and orders the hits.',
  },
);

const joinMembers = {
  right_table: Type.String({ description: 'A table, or a name of `foreign_sources`.' }),
  join_type: Type.Optional(
    Type.Union([Type.Literal('inner'), Type.Literal('left'), Type.Literal('right')], { default: 'inner' }),
  ),
  on: Type.Object({
    left_field: Type.String({ description: 'A path, `_id`, or a path of a table joined before: `customers.city`.' }),
    right_field: Type.String({ description: 'A path, or `_id`.' }),
    operator: Type.Optional(
      Type.Union(
        (['eq', 'neq', 'lt', 'lte', 'gt', 'gte'] as const).map((each) => Type.Literal(each)),
        { default: 'eq' },
      ),
    ),
  }),
  right_filters: Type.Optional(
    Type.Object({
      filter_query: Type.Optional(queryNode),
      filter_prefix: Type.Optional(Type.String()),
      limit: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 100_000, description: 'Only the first rows by key take part.' }),
      ),
    }),
  ),
  right_fields: Type.Optional(Type.Array(Type.String(), { description: 'Members to take over: all when absent.' })),
  strategy_hint: Type.Optional(
    Type.Union([Type.Literal('broadcast'), Type.Literal('index_lookup'), Type.Literal('shuffle')]),
  ),
};

export const join = Type.Object(
  {
    ...joinMembers,
    nested_join: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'A join of the joined rows.' }),
    ),
  },
  {
    description:
      'Rows of another table beside each hit, in `_source` as "<right_table>.<field>". A hit with several rows is several ' +
      'hits; `limit`, `offset` and `total` count joined rows.',
  },
);

export const foreignSource = Type.Object({
  connection: Type.String({ description: 'A connection of the kind `database`.' }),
  table: Type.String({ description: 'One of the tables that the connection lists.' }),
  key: Type.Optional(Type.String({ description: 'The column of the keys.', default: 'id' })),
  columns: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Object({ name: Type.String() })]))),
  type: Type.Optional(Type.String()),
  postgres_table: Type.Optional(Type.String({ description: 'Another name of `table`.' })),
});

export const queryRequest = Type.Object(
  {
    table: Type.Optional(Type.String()),
    full_text_search: Type.Optional(queryNode),
    full_text_index: Type.Optional(
      Type.String({ description: 'The full-text index that is searched, where it is not to be that of the schema.' }),
    ),
    query: Type.Optional(queryNode),
    semantic_search: Type.Optional(
      Type.String({
        description: 'Text to search by, embedded by the embedder of each index that is searched for it.',
      }),
    ),
    embedding_template: Type.Optional(
      Type.String({
        description:
          'Handlebars that makes of `semantic_search` what is embedded; `{{this}}` and `{{query}}` stand for it.',
      }),
    ),
    embeddings: Type.Optional(
      Type.Record(Type.String(), queryVector, { description: 'Vectors to search for, by embeddings index.' }),
    ),
    indexes: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Embeddings indexes to search, and a full-text index, as `full_text_index` names one. Without embeddings indexes: ' +
          'those of `embeddings`, and for `semantic_search` the only index that has an embedder.',
      }),
    ),
    search_effort: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        default: 0.5,
        description:
          'Dense searches: 0 is fastest, 1 most thorough. From 0.5 on, what seems to have missed rows is searched again.',
      }),
    ),
    distance_under: Type.Optional(Type.Number({ description: 'Only hits whose raw `_distance` is at most this.' })),
    distance_over: Type.Optional(Type.Number({ description: 'Only hits whose raw `_distance` is at least this.' })),
    merge_config: Type.Optional(mergeConfig),
    pruner: Type.Optional(pruner),
    reranker: Type.Optional(reranker),
    filter_query: Type.Optional(queryNode),
    exclusion_query: Type.Optional(queryNode),
    with: Type.Optional(
      Type.Record(Type.String(), queryNode, { description: 'Filters by name, for nodes such as {"ref": "name"}.' }),
    ),
    filter_prefix: Type.Optional(Type.String({ description: 'Only documents whose key begins so.' })),
    fields: Type.Optional(
      Type.Array(Type.String(), { description: 'Members to return: all when absent, no `_source` when empty.' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, default: 10 })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, default: 0 })),
    order_by: Type.Optional(Type.Array(orderBy)),
    join: Type.Optional(join),
    graph_searches: Type.Optional(
      Type.Record(Type.String(), jsonObject, {
        description:
          'Searches of graph indexes by name, answered in `graph_results`: `type` (`neighbors`, `traverse`, `shortest_path`, ' +
          '`k_shortest_paths`, `pattern`), `index_name`, `start_nodes`, `target_nodes` (`keys`, or `result_ref` to other ' +
          'searches of the request), `pattern`, `return_aliases`, `params`. A request with nothing else has no hits.',
      }),
    ),
    graph_queries: Type.Optional(
      Type.Record(Type.String(), jsonObject, { description: 'Another name of `graph_searches`.' }),
    ),
    expand_strategy: Type.Optional(
      Type.Union([Type.Literal('union'), Type.Literal('intersection')], {
        description:
          'How the nodes of `graph_searches` and the hits come together. `union`: nodes that are not on the page follow its ' +
          'hits with the score 1. `intersection`: hits are nodes as well.',
      }),
    ),
    foreign_sources: Type.Optional(
      Type.Record(Type.String(), foreignSource, {
        description: 'Tables elsewhere, by the name that `table` or a join has for each.',
      }),
    ),
    search_after: Type.Optional(
      Type.Array(Type.Unknown(), {
        description: 'The `_sort` of a hit, unchanged: the page after it. Needs `order_by`.',
      }),
    ),
    search_before: Type.Optional(
      Type.Array(Type.Unknown(), { description: 'The `_sort` of a hit, unchanged: the page before it.' }),
    ),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          'When it is over, what was found by then is answered as `partial`. `wait_for_index_ms` and repeated searches are a part ' +
          'of it. At most the bound of the server; 0 is answered 504.',
      }),
    ),
    wait_for_index_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 60_000,
        description:
          'Wait up to so long until the indexes show everything that was written before the query. When absent, a query ' +
          'waits for an index that has just been opened to show what it showed before; 0 waits for nothing.',
      }),
    ),
    typo_tolerance: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Words that score may be misspelt: by one edit from 5 characters on, by two from 9. ' +
          'Each stands for the 64 most frequent words near it at most.',
      }),
    ),
    highlight: Type.Optional(
      Type.Union([Type.Boolean(), highlight], { description: 'Adds `_highlight` to each hit: path -> fragments.' }),
    ),
    explain: Type.Optional(
      Type.Boolean({ default: false, description: 'Adds `_explanation` to each hit: the tree of its score.' }),
    ),
    aggregations: Type.Optional(aggregationMap),
    facets: Type.Optional(
      Type.Union([Type.Array(Type.String()), jsonObject], {
        description: 'Shorter for `terms` aggregations: paths, or names with {"field", "size"}.',
      }),
    ),
    count: Type.Optional(Type.Boolean({ default: false, description: 'Return only the number of matches.' })),
    profile: Type.Optional(Type.Boolean({ default: false })),
  },
  { additionalProperties: false },
);

export const hitsTotal = Type.Object({
  value: Type.Integer(),
  relation: Type.Union([Type.Literal('exact'), Type.Literal('gte')]),
});

export const queryHit = Type.Object({
  _id: Type.String(),
  _score: Type.Number(),
  _distance: Type.Optional(
    Type.Number({
      description: 'By the dense index, smaller is nearer: squared Euclidean, 1 - cosine, or the negative dot product.',
    }),
  ),
  _index_scores: Type.Optional(
    Type.Record(Type.String(), Type.Number(), {
      description: 'The score of each search that found the hit, by index; text as `full_text`.',
    }),
  ),
  _source: Type.Optional(jsonObject),
  _sort: Type.Optional(
    Type.Array(Type.Unknown(), { description: 'One typed value for each `order_by`, and a string that seals them.' }),
  ),
  _highlight: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
  _explanation: Type.Optional(
    Type.Object({ value: Type.Number(), description: Type.String(), details: Type.Optional(Type.Array(jsonObject)) }),
  ),
});

const legProfile = Type.Object({
  name: Type.String(),
  kind: Type.Union([Type.Literal('full_text'), Type.Literal('dense'), Type.Literal('sparse'), Type.Literal('graph')]),
  weight: Type.Optional(Type.Number()),
  arms: Type.Array(Type.String(), { description: 'Ways of searching that were chosen, such as `scan` or `graph`.' }),
  candidates: Type.Optional(Type.Integer({ description: 'Vectors whose exact score was computed.' })),
  visited: Type.Optional(Type.Integer({ description: 'Vectors or postings that were looked at.' })),
  segments: Type.Optional(Type.Integer()),
  hits: Type.Integer(),
  took_ms: Type.Number(),
});

const joinProfile = Type.Object({
  right_table: Type.String(),
  strategy_used: Type.Union([Type.Literal('broadcast'), Type.Literal('index_lookup')]),
  access: Type.String({ description: 'How rows were found: `hash`, `comparison`, `key` or `index`.' }),
  reason: Type.String(),
  left_rows_scanned: Type.Integer(),
  right_rows_scanned: Type.Integer(),
  rows_matched: Type.Integer({ description: 'Pairs of rows.' }),
  rows_unmatched_left: Type.Integer({ description: 'Rows without a pair.' }),
  rows_unmatched_right: Type.Optional(Type.Integer({ description: 'Of a right join that was read to its end.' })),
  duration_ms: Type.Optional(Type.Integer({ description: 'Of all joins, with the search for hits.' })),
  nested_join: Type.Optional(jsonObject),
});

export const queryProfile = Type.Object({
  shards: Type.Object({ total: Type.Integer(), successful: Type.Integer(), failed: Type.Integer() }),
  stages: Type.Object({
    plan_ms: Type.Number(),
    embed_ms: Type.Optional(Type.Number({ description: 'Of `semantic_search`.' })),
    search_ms: Type.Number(),
    rerank_ms: Type.Optional(Type.Number()),
  }),
  legs: Type.Array(legProfile, { description: 'How each search went; text is called `full_text`.' }),
  merge: Type.Optional(
    Type.Object({
      strategy: Type.String(),
      full_text_hits: Type.Integer(),
      semantic_hits: Type.Integer({ description: 'Hits of all searches by vectors.' }),
      graph_hits: Type.Integer({ description: 'Hits of all graph searches that are legs.' }),
      fused_hits: Type.Integer(),
      pruned_hits: Type.Integer(),
      duration_ms: Type.Integer(),
    }),
  ),
  reranker: Type.Optional(
    Type.Object({ model: Type.String(), documents_reranked: Type.Integer(), duration_ms: Type.Integer() }),
  ),
  join: Type.Optional(joinProfile),
  filter: Type.Optional(Type.Object({ documents: Type.Integer(), took_ms: Type.Number() })),
  algebraic: Type.Optional(
    Type.Array(
      Type.Object({
        aggregation: Type.String(),
        fallback: Type.Optional(Type.String({ description: 'Why the documents were visited instead.' })),
      }),
      { description: 'Of a table with an algebraic index: which aggregations its counters have answered.' },
    ),
  ),
});

export const queryResult = Type.Object({
  hits: Type.Optional(Type.Object({ total: hitsTotal, hits: Type.Array(queryHit), max_score: Type.Number() })),
  aggregations: Type.Optional(Type.Record(Type.String(), jsonObject)),
  graph_results: Type.Optional(
    Type.Record(Type.String(), graphResult, { description: 'Of each of the `graph_searches` what it found.' }),
  ),
  profile: Type.Optional(queryProfile),
  partial: Type.Optional(
    Type.Boolean({
      description:
        'True: not all documents were looked at, because the time was over, an index is still replaying what it ' +
        'showed before a restart or is too far behind what was written, or it was built while something stored was damaged, such as a document or a ' +
        'vector, which it lacks.',
    }),
  ),
  failover: Type.Optional(
    Type.Object(
      { code: Type.String(), error: Type.String() },
      { description: 'Why words were searched alone: the text of `semantic_search` could not be embedded.' },
    ),
  ),
  damaged: Type.Optional(
    Type.Integer({ description: 'Hits that were left out because what is stored does not match its checksum.' }),
  ),
  took: Type.Integer({ description: 'Milliseconds.' }),
  status: Type.Integer({ description: 'What the request would have been answered alone.' }),
  code: Type.Optional(Type.String({ description: 'Error code, when this query failed among several.' })),
  error: Type.Optional(Type.String()),
  table: Type.Optional(Type.String()),
});

export const queryResponse = Type.Object({ responses: Type.Array(queryResult) });
