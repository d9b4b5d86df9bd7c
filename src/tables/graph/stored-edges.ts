import type { NativeEdge } from '../../engine/native-graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import { type Edge, readEdges } from '../../lib/parts/edges-part.ts';
import type { Table } from '../table.ts';
import { intervalOf } from '../writes/frame-split.ts';

/** An edge as answers show it. */
export interface ShownEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
  metadata?: unknown;
  created_at: string;
  updated_at?: string;
}

/** Reads what the index does not hold of edges: their metadata, and when they were written last. */
export class StoredEdges {
  readonly #table: Table;
  readonly #ranges: readonly IndexedRange[];
  readonly #partId: number;
  readonly #lists = new Map<string, Map<string, Edge>>();

  constructor(table: Table, ranges: readonly IndexedRange[], partId: number) {
    this.#table = table;
    this.#ranges = ranges;
    this.#partId = partId;
  }

  show(edge: NativeEdge): ShownEdge {
    const { source, target, type, weight, created_ms } = edge;
    const stored = this.#listOf(source).get(`${type}\0${target}`);
    return {
      source,
      target,
      type,
      weight,
      ...(stored && stored.metadata !== '' ? { metadata: JSON.parse(stored.metadata) } : {}),
      created_at: new Date(created_ms).toISOString(),
      ...(stored ? { updated_at: new Date(stored.updatedMs).toISOString() } : {}),
    };
  }

  #listOf(source: string): Map<string, Edge> {
    const known = this.#lists.get(source);
    if (known) return known;
    const list = new Map<string, Edge>();
    this.#lists.set(source, list);
    const { stored } = must(this.#ranges[intervalOf(source, this.#table.ranges)], 'intervals cover every key');
    const ordinal = stored.documents.get(source)?.ordinal;
    const body = ordinal === undefined ? undefined : stored.parts.read([ordinal], [this.#partId]).found.get(ordinal);
    const part = body?.get(this.#partId);
    // Declared edges come first, and stand for those of a field.
    for (const edge of part ? readEdges(part) : []) {
      const place = `${edge.type}\0${edge.target}`;
      if (!list.has(place)) list.set(place, edge);
    }
    return list;
  }
}
