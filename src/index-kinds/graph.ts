import { parseDuration } from '../lib/duration.ts';
import type { EdgeSourceConfig } from './configuration/edge-source.ts';
import type { KeptGraphMembers } from './configuration/graph-kept-members.ts';
import type { CommonDefinition, CommonIndexConfig, IndexKind } from './index-kind.ts';

/** A type of edges, as it is configured. */
export interface EdgeTypeConfig {
  name: string;
  /** Dotted path of the member that holds the keys of targets: its edges follow the document. */
  field?: string;
  topology: 'graph' | 'tree';
  min_weight: number;
  /** Checked only where it is given. */
  max_weight?: number;
  allow_self_loops: boolean;
  required_metadata: string[];
}

/** A checked configuration of a graph index. */
export type GraphConfig = CommonIndexConfig &
  Partial<EdgeSourceConfig> &
  KeptGraphMembers & {
    type: 'graph';
    /** How long an edge lives from its creation. */
    ttl_duration?: string;
    /** Empty: edges of any type. */
    edge_types: EdgeTypeConfig[];
    /** 0 for no bound. */
    max_edges_per_document: number;
  };

export interface GraphDefinition extends CommonDefinition {
  kind: 'graph';
  ttlMs: number | undefined;
  edgeTypes: EdgeTypeConfig[];
  maxEdges: number;
  /** The source of its edges; undefined where they come with the documents. */
  derived?: EdgeSourceConfig | undefined;
}

export const graph: IndexKind<GraphConfig, GraphDefinition> = {
  kind: 'graph',
  follows: 'parts',
  define: (identity, config) => {
    const { edge_types: edgeTypes, max_edges_per_document: maxEdges, ttl_duration: ttl } = config;
    return {
      ...identity,
      kind: 'graph',
      edgeTypes,
      maxEdges,
      ttlMs: ttl === undefined ? undefined : parseDuration(ttl),
      derived: edgeSourceOf(config),
    };
  },
  // Edges go with their index.
  shapeOf: () => undefined,
  nativeOptions: ({ partId }) => ({ type: 'graph', index_id: partId }),
  writtenVectors: (definition) =>
    definition.derived ? { kind: 'managed' } : { kind: 'graph', edgeRules: edgeRulesJson(definition) },
  counts: ({ graph: counted = { edges: 0, nodes: 0 } }) => {
    const { edges, nodes } = counted;
    return { doc_count: nodes, term_count: 0, node_count: nodes, edge_count: edges };
  },
};

function edgeSourceOf({ source, nodes, edge, context }: GraphConfig): EdgeSourceConfig | undefined {
  return source && nodes && edge && { source, nodes, edge, ...(context && { context }) };
}

/** The rules as the engine reads them. */
function edgeRulesJson({ edgeTypes, maxEdges }: GraphDefinition): string {
  const rules = edgeTypes.map(({ topology, ...type }) => ({ ...type, is_tree: topology === 'tree' }));
  return JSON.stringify({ edge_types: rules, max_edges_per_document: maxEdges });
}
