import type { NativeEdge } from '../../engine/native-graph.ts';

/** An edge as answers show it. */
export interface ShownEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
  metadata?: unknown;
  created_at: string;
  updated_at: string;
}

export function shownEdges(edges: readonly NativeEdge[]): ShownEdge[] {
  return edges.map(({ source, target, type, weight, metadata, created_ms, updated_ms }) => ({
    source,
    target,
    type,
    weight,
    ...(metadata === undefined ? {} : { metadata: JSON.parse(metadata) }),
    created_at: new Date(created_ms).toISOString(),
    updated_at: new Date(updated_ms).toISOString(),
  }));
}
