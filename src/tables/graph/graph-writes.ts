import { graphsAmong } from '../../index-kinds/all-kinds.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { readFrame, rowKind } from '../../lib/document-frame.ts';
import type { GraphWrites, RangeWrite } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';
import { removedTargetsOf } from './removed-targets.ts';

/** The facts for a write to one of the ranges. */
export function graphsOfWrite(graphs: GraphWrites, write: RangeWrite, ranges: readonly IndexedRange[]): GraphWrites {
  if (!write.merge && !transformsFields(graphs, write)) return graphs;
  const at = ranges.findIndex(({ rangeId }) => rangeId === write.rangeId);
  const removed = Object.entries(removedTargetsOf(ranges));
  return { ...graphs, removed: removed.map(([target, through]) => [target, through[at] ?? 0] as const) };
}

/** Whether the write may change edges of fields beside others, of the same list, that are gone. */
function transformsFields({ indexes }: GraphWrites, { frame: bytes }: RangeWrite): boolean {
  if (bytes === undefined || indexes.every(({ fields }) => fields.length === 0)) return false;
  const frame = readFrame(bytes);
  for (let row = 0; row < frame.rowCount; row += 1) if (frame.kind(row) === rowKind.transform) return true;
  return false;
}

/** Whether some type of edges of the table is a tree. */
export function hasTrees(table: Table): boolean {
  const graphs = graphsAmong(table.indexes.map(({ definition }) => definition));
  return graphs.some(({ edgeTypes }) => edgeTypes.some(({ topology }) => topology === 'tree'));
}

export function hasGraphs(table: Table): boolean {
  return table.indexes.some(({ definition }) => definition.kind === 'graph');
}

/**
 * The facts about the table's graph indexes that the writer needs; undefined when it has none. `ranges` are all of the table, and
 * this is called when the write is on its way: every edge that was acknowledged before then is at or below their heads.
 */
export function graphWritesOf(table: Table, ranges: readonly IndexedRange[]): GraphWrites | undefined {
  const graphs = graphsAmong(table.indexes.map(({ definition }) => definition));
  if (graphs.length === 0) return undefined;
  return {
    indexes: graphs.map(({ name, partId, ttlMs, maxEdges, edgeTypes }) => {
      const fields = edgeTypes.flatMap(({ name: type, field: path }) => (path === undefined ? [] : [{ type, path }]));
      const treeTypes = edgeTypes.flatMap(({ name: type, topology }) => (topology === 'tree' ? [type] : []));
      return { name, partId, ttlMs, maxEdges, fields, treeTypes };
    }),
    rangeIds: ranges.map(({ rangeId }) => rangeId),
    heads: ranges.map(({ head }) => head),
  };
}
