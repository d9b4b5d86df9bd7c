import type { NativeEdge, NativeGraphSearch } from '../../engine/native-graph.ts';
import type { PatternRequest } from '../../query/request/graph/pattern-request.ts';
import { type Decider, type Partial, type SearchedGraph, type ShownNode, shownNode } from './searched-graph.ts';

/** Nodes that stand to each other as a pattern says. */
export interface ShownMatch {
  /** Of each alias that is returned its node. */
  bindings: Record<string, ShownNode>;
  /** The edges from the first element to the last. */
  path?: NativeEdge[];
}

/** The matches of a pattern whose first element is one of `starts`; `total` counts those that are not shown, too. */
export async function matchPattern(
  searched: SearchedGraph,
  asked: PatternRequest,
  starts: string[],
): Promise<{ matches: ShownMatch[]; total: number } & Partial> {
  const { elements, returned, documents, nodeFilter, ...options } = asked;
  const filters = elements.map((element) => element.nodeFilter && searched.visibility(element.nodeFilter));
  const search = (): NativeGraphSearch => ({
    pattern: {
      ...options,
      elements: elements.map(({ variable, edge }, at) => {
        const filter = filters[at];
        return { variable, edge, ...(filter ? { is_filtered: true, rejected: filter.hidden() } : {}) };
      }),
    },
  });
  const deciders = filters.flatMap((visibility, at): Decider[] => {
    return visibility ? [{ visibility, met: ({ candidates }) => candidates?.[at] ?? [] }] : [];
  });
  const request = () => ({ search: search(), starts, direction: 'out' as const });
  const { answer, partial } = await searched.search(request, nodeFilter, deciders);
  const found = answer.matches ?? [];
  const isShown = (at: number) => returned.has(elements[at]?.alias ?? '');
  const bound = found.flatMap(({ nodes }) => nodes.filter((_, at) => isShown(at)));
  const shownDocuments = await searched.documentsOf(bound, documents);
  const matches = found.map(({ nodes, path }): ShownMatch => {
    const bindings: Record<string, ShownNode> = Object.create(null);
    for (const [at, { alias }] of elements.entries()) {
      const node = nodes[at];
      // An alias that comes again is the same node: the first way to it is shown.
      if (alias === undefined || !node || !returned.has(alias) || alias in bindings) continue;
      bindings[alias] = shownNode(node, shownDocuments);
    }
    return { bindings, ...(options.include_paths ? { path: path ?? [] } : {}) };
  });
  return { matches, total: answer.total, ...partial };
}
