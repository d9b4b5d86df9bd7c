import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { WholeSearch } from '../inputs/bring-inputs.ts';
import type { PlanLeg } from '../plan/native-plan.ts';
import { type GraphSearch, isLeg } from '../request/graph/graph-searches.ts';
import type { SearchableTable } from '../searchable-table.ts';

/** The results of the graph searches of a query. */
export interface GraphFound {
  /** By the name of the search, as the answer shows it. */
  shown: object;
  /** All nodes of the traversals that take all, as legs do, and whether there are no more. */
  reached: ReadonlyMap<string, { nodes: { key: string; depth: number; distance: number }[]; isWhole: boolean }>;
  /** The keys of the nodes that are shown, in the order of the searches. */
  shownKeys(): string[];
  /** The keys of all nodes, where the searches were to take all, and whether there are no more. */
  allKeys(): { keys: string[]; isWhole: boolean };
}

/** Bytes of a document of a leg: range, ordinal, score. */
const documentBytes = 12;
/** Keys that are looked up before the loop yields to other requests. */
const sliceKeys = 128;

/** The search with the documents of its graph legs, which lie behind the query vectors. */
export async function bringGraphLegs(
  search: WholeSearch,
  searches: readonly GraphSearch[],
  found: GraphFound,
  { table, ranges }: { table: SearchableTable; ranges: readonly IndexedRange[] },
): Promise<WholeSearch & { isWhole: boolean }> {
  const lists: Uint8Array[] = [search.vectors];
  const legs: PlanLeg[] = [];
  let isWhole = true;
  for (const leg of search.plan.legs ?? []) {
    const asked = searches.find((each) => each.name === leg.name && leg.kind === 'graph');
    if (!asked || !isLeg(asked)) {
      legs.push(leg);
      continue;
    }
    const reached = must(found.reached.get(leg.name), 'a leg that was not searched');
    const best = bestScores(reached.nodes, asked.leg.by);
    const list = await listOf(best, table, ranges);
    isWhole &&= reached.isWhole;
    lists.push(list);
    legs.push({ ...leg, bytes: list.byteLength });
  }
  return { ...search, plan: { ...search.plan, legs }, vectors: Buffer.concat(lists), isWhole };
}

/** The best score of each node: it may have been reached in several ways. */
function bestScores(
  nodes: readonly { key: string; depth: number; distance: number }[],
  by: 'depth' | 'distance',
): [key: string, score: number][] {
  const best = new Map<string, number>();
  for (const node of nodes) {
    const score = 1 / (1 + Math.max(0, node[by]));
    if (score > (best.get(node.key) ?? 0)) best.set(node.key, score);
  }
  return [...best];
}

/** The documents of nodes; a node without one is no hit. */
async function listOf(
  scores: readonly (readonly [key: string, score: number])[],
  table: SearchableTable,
  ranges: readonly IndexedRange[],
): Promise<Uint8Array> {
  const list = new DataView(new ArrayBuffer(scores.length * documentBytes));
  let end = 0;
  const append = (at: number) => {
    const [key, score] = must(scores[at], 'a gap in a list');
    const range = table.rangeOf(key);
    const document = must(ranges[range], 'intervals cover every key').stored.documents.get(key);
    if (!document) return;
    list.setUint32(end, range, true);
    list.setUint32(end + 4, document.ordinal, true);
    list.setFloat32(end + 8, score, true);
    end += documentBytes;
  };
  await forEachYielding(scores.length, append, sliceKeys);
  return new Uint8Array(list.buffer, 0, end);
}
