interface MatchedEdge {
  source: string;
  target: string;
  type: string;
}

/** An element of a pattern of the model; the first has nothing but its alias. */
export interface ModelElement {
  alias: string;
  types?: readonly string[];
  direction?: 'out' | 'in' | 'both';
  minHops?: number;
  maxHops?: number;
  fits?: (key: string) => boolean;
}

/**
 * Matches of a pattern that begin at a node, each as `key:hops` by element, sorted: every way is tried. `edgesAt`: those that
 * lead from a node or to it.
 */
export function plainMatches(
  edgesAt: (key: string) => readonly MatchedEdge[],
  start: string,
  elements: readonly ModelElement[],
  isShown = (_: string) => true,
): string[] {
  const found = new Set<string>();
  const take = (at: number, bound: { key: string; hops: number }[]) => {
    const [here, element] = [bound[at], elements[at]];
    if (!here || !element || !(element.fits?.(here.key) ?? true)) return;
    const first = elements.findIndex(({ alias }) => alias === element.alias);
    if (bound[first]?.key !== here.key) return;
    const next = elements[at + 1];
    if (!next) {
      found.add(bound.map(({ key, hops }) => `${key}:${hops}`).join(' '));
      return;
    }
    for (const { end, hops } of waysFrom(edgesAt, here.key, next, isShown))
      take(at + 1, [...bound, { key: end, hops }]);
  };
  if (isShown(start)) take(0, [{ key: start, hops: 0 }]);
  return [...found].sort();
}

/** Ends of all ways on which no node and no edge comes twice, but which may end where they began. */
function waysFrom(
  edgesAt: (key: string) => readonly MatchedEdge[],
  start: string,
  { types, direction = 'out', minHops = 1, maxHops = 1 }: ModelElement,
  isShown: (key: string) => boolean,
): { end: string; hops: number }[] {
  const ends: { end: string; hops: number }[] = [];
  const walk = (nodes: readonly string[], walked: readonly MatchedEdge[]) => {
    const here = nodes[nodes.length - 1] as string;
    if (walked.length >= minHops) ends.push({ end: here, hops: walked.length });
    if (walked.length === maxHops || (walked.length > 0 && here === start)) return;
    for (const edge of edgesAt(here)) {
      const { source, target, type } = edge;
      if (types !== undefined && !types.includes(type)) continue;
      const out = direction !== 'in' && source === here ? [target] : [];
      const into = direction !== 'out' && target === here ? [source] : [];
      for (const next of [...out, ...into]) {
        const isOpen = next === start || !nodes.includes(next);
        if (isOpen && !isWalked(walked, edge) && isShown(next)) walk([...nodes, next], [...walked, edge]);
      }
    }
  };
  walk([start], []);
  return ends;
}

function isWalked(walked: readonly MatchedEdge[], { source, target, type }: MatchedEdge): boolean {
  return walked.some((edge) => edge.source === source && edge.target === target && edge.type === type);
}
