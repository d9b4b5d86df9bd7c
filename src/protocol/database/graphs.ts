import { Type } from '@sinclair/typebox';
import { jsonObject } from './tables.ts';

export const edgesQuery = Type.Object({
  key: Type.String({ description: 'Key of the node' }),
  direction: Type.Optional(Type.String({ description: '`out` (when absent), `in` or `both`' })),
  type: Type.Optional(Type.String({ description: 'Edges of this type only' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: 100 })),
  after: Type.Optional(Type.String({ description: '`next` of the page before' })),
});

const edge = Type.Object({
  source: Type.String(),
  target: Type.String(),
  type: Type.String(),
  weight: Type.Number(),
  metadata: Type.Optional(jsonObject),
  created_at: Type.String(),
  updated_at: Type.Optional(Type.String()),
});

const answerHead = {
  took: Type.Integer({ description: 'Milliseconds' }),
  partial: Type.Optional(
    Type.String({
      description:
        'Why the answer lacks something: a bound of the search (`edges`, `nodes`, `time`), `indexing` while the index does ' +
        'not show every write, or `damaged` where stored edges were when it was built. Absent from a whole answer.',
    }),
  ),
};

export const edgesResponse = Type.Object({
  edges: Type.Array(edge),
  count: Type.Integer({ description: 'Edges of this page' }),
  total: Type.Integer({ description: 'Edges of the node' }),
  next: Type.Optional(Type.String({ description: 'There may be more: ask for them with `after`' })),
  ...answerHead,
});

const node = {
  key: Type.String(),
  depth: Type.Integer(),
  distance: Type.Number({ description: 'Sum of the weights on the way' }),
  path: Type.Optional(Type.Array(Type.String())),
  path_edges: Type.Optional(Type.Array(edge)),
  edges: Type.Optional(Type.Array(edge, { description: 'The edge by which it was reached' })),
  document: Type.Optional(jsonObject),
};

const graphNode = Type.Object({
  ...node,
  evidence: Type.Optional(
    Type.Object({ path_edges: Type.Array(edge, { description: 'Those edges of the path that have metadata' }) }),
  ),
});

const graphPath = Type.Object({
  nodes: Type.Array(Type.String()),
  edges: Type.Array(edge),
  total_weight: Type.Number(),
  length: Type.Integer(),
});

export const graphResult = Type.Object({
  type: Type.String(),
  total: Type.Integer({ description: 'Nodes, paths or matches that were found; those that are not shown included' }),
  nodes: Type.Optional(Type.Array(graphNode)),
  paths: Type.Optional(Type.Array(graphPath)),
  matches: Type.Optional(
    Type.Array(
      Type.Object({
        bindings: Type.Record(Type.String(), graphNode, { description: 'Of each alias its node' }),
        path: Type.Optional(Type.Array(edge)),
      }),
    ),
  ),
  ...answerHead,
});

const words = (...all: string[]) => Type.Union(all.map((each) => Type.Literal(each)));
const nodeKey = Type.String({ minLength: 1, maxLength: 1_024, description: 'Key of a node' });

/** Conditions on the edges that a search follows, and on the nodes that it visits. */
const choice = {
  edge_types: Type.Optional(Type.Array(Type.String(), { description: 'Edges of these types only' })),
  direction: Type.Optional(words('out', 'in', 'both')),
  min_weight: Type.Optional(Type.Number()),
  max_weight: Type.Optional(Type.Number()),
  node_filter: Type.Optional(
    Type.Object(
      {
        filter_query: Type.Optional(Type.Unknown({ description: 'A query node' })),
        filter_prefix: Type.Optional(Type.String({ description: 'Prefix of the keys' })),
      },
      { additionalProperties: false },
    ),
  ),
};
const depth = (usual: number) => Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: usual }));

/** Documents what `readTraverse` reads. */
export const traverseRequest = Type.Object(
  {
    start: Type.Optional(nodeKey),
    start_nodes: Type.Optional(
      Type.Object(
        { keys: Type.Array(nodeKey, { minItems: 1, maxItems: 1_000 }) },
        { additionalProperties: false, description: 'Instead of `start`' },
      ),
    ),
    ...choice,
    max_depth: depth(3),
    max_results: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 10_000, default: 100, description: '0: as many as may be' }),
    ),
    deduplicate_nodes: Type.Optional(Type.Boolean({ default: true })),
    include_paths: Type.Optional(Type.Boolean({ default: false })),
    include_edges: Type.Optional(Type.Boolean({ default: false })),
    include_documents: Type.Optional(Type.Boolean({ default: false })),
    fields: Type.Optional(Type.Array(Type.String(), { description: 'Of the documents, with `include_documents`' })),
  },
  { additionalProperties: false },
);

/** Documents what `readPaths` reads. */
export const pathsRequest = Type.Object(
  {
    source: nodeKey,
    target: nodeKey,
    ...choice,
    max_depth: depth(10),
    weight_mode: Type.Optional(words('min_hops', 'min_weight', 'max_weight')),
    k: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 1, description: 'Paths to find' })),
  },
  { additionalProperties: false },
);

export const traverseResponse = Type.Object({
  results: Type.Array(Type.Object(node)),
  count: Type.Integer(),
  total: Type.Integer({ description: 'Nodes that were found' }),
  ...answerHead,
});

export const pathsResponse = Type.Object({
  paths: Type.Array(graphPath),
  source: Type.String(),
  target: Type.String(),
  weight_mode: Type.String(),
  paths_found: Type.Integer(),
  search_time_ms: Type.Integer({ description: 'Another name of `took`' }),
  ...answerHead,
});

export const algorithmJob = Type.Object({
  job_id: Type.String(),
  algorithm: Type.String(),
  phase: Type.String({ description: '`queued`, `running`, `succeeded`, `failed` or `cancelled`' }),
  progress: Type.Object({
    step: Type.String({ description: '`waiting`, `computing`, `writing` or `done`' }),
    iterations: Type.Optional(
      Type.Integer({ description: 'Of `pagerank`: how often the graph was gone through, noted twice a second' }),
    ),
    written: Type.Integer({ description: 'Nodes whose documents have been written' }),
  }),
  result: Type.Optional(
    Type.Object({
      node_count: Type.Integer(),
      edge_count: Type.Integer(),
      nodes: Type.Optional(Type.Array(Type.Object({ key: Type.String(), score: Type.Number() }))),
      components: Type.Optional(
        Type.Array(Type.Object({ key: Type.String({ description: 'Its least key' }), nodes: Type.Integer() })),
      ),
      component_count: Type.Optional(Type.Integer()),
      iterations: Type.Optional(Type.Integer()),
      has_converged: Type.Optional(Type.Boolean()),
    }),
  ),
  code: Type.Optional(Type.String({ description: 'Why it has failed' })),
  error: Type.Optional(Type.String()),
});
