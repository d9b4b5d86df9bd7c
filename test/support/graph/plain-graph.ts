import { compareKeys } from '../../../src/lib/key-order.ts';
import { type ModelElement, plainMatches } from './plain-matches.ts';

export interface PlainEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
}

export type PlainMode = 'min_hops' | 'min_weight' | 'max_weight';
type Direction = 'out' | 'in' | 'both';

/** The sum of a mode along a path: the least total is best. */
const costs: Record<
  PlainMode,
  { start: number; add(cost: number, weight: number): number; shown(cost: number): number }
> = {
  min_hops: { start: 0, add: (cost) => cost + 1, shown: (cost) => cost },
  min_weight: { start: 0, add: (cost, weight) => cost + weight, shown: (cost) => cost },
  // Products of fractions: the greatest is best, so that they are negated.
  max_weight: { start: -1, add: (cost, weight) => cost * weight, shown: (cost) => -cost },
};

/** A graph as lists of edges, and the plainest algorithms over it: what a graph index has to answer on real graphs. */
export class PlainGraph {
  readonly #out = new Map<string, PlainEdge[]>();
  readonly #in = new Map<string, PlainEdge[]>();

  constructor(edges: readonly PlainEdge[]) {
    for (const edge of edges) {
      push(this.#out, edge.source, edge);
      push(this.#in, edge.target, edge);
    }
  }

  nodes(): string[] {
    return [...new Set([...this.#out.keys(), ...this.#in.keys()])].sort(compareKeys);
  }

  sources(): string[] {
    return [...this.#out.keys()].sort(compareKeys);
  }

  /** By type and the other end. */
  edges(key: string, direction: 'out' | 'in'): PlainEdge[] {
    const [edges, other] = direction === 'out' ? [this.#out, 'target' as const] : [this.#in, 'source' as const];
    return [...(edges.get(key) ?? [])].sort(
      (left, right) => compareKeys(left.type, right.type) || compareKeys(left[other], right[other]),
    );
  }

  #steps(key: string, direction: Direction): { to: string; weight: number }[] {
    const out = direction === 'in' ? [] : (this.#out.get(key) ?? []).map(({ target: to, weight }) => ({ to, weight }));
    const back = direction === 'out' ? [] : (this.#in.get(key) ?? []).map(({ source: to, weight }) => ({ to, weight }));
    return [...out, ...back];
  }

  /** Nodes within some steps by depth and key. */
  reached(start: string, direction: Direction, maxDepth: number): [key: string, depth: number][] {
    const depths = new Map([[start, 0]]);
    let level = [start];
    for (let depth = 1; depth <= maxDepth; depth += 1) {
      const next = new Set(level.flatMap((key) => this.#steps(key, direction).map(({ to }) => to)));
      level = [...next].filter((key) => !depths.has(key));
      for (const key of level) depths.set(key, depth);
    }
    depths.delete(start);
    return [...depths].sort(([left, a], [right, b]) => a - b || compareKeys(left, right));
  }

  /** The total of the best path of at most some edges, by Bellman and Ford; undefined where there is none. */
  best(start: string, target: string, mode: PlainMode, direction: Direction, maxHops: number): number | undefined {
    const { start: cost, add, shown } = costs[mode];
    let changed = new Map([[start, cost]]);
    const known = new Map(changed);
    for (let hop = 0; hop < maxHops && changed.size > 0; hop += 1) {
      const next = new Map<string, number>();
      for (const [key, cost] of changed) {
        for (const { to, weight } of this.#steps(key, direction)) {
          const sum = add(cost, weight);
          if (sum < (known.get(to) ?? Infinity) && sum < (next.get(to) ?? Infinity)) next.set(to, sum);
        }
      }
      for (const [key, cost] of next) known.set(key, cost);
      changed = next;
    }
    const found = known.get(target);
    return found === undefined ? undefined : shown(found);
  }

  /** The totals of the best paths without a node twice: every path there is, sorted. */
  bestPaths(start: string, target: string, mode: PlainMode, count: number, maxHops: number): number[] {
    const { start: first, add, shown } = costs[mode];
    const found: number[] = [];
    const follow = (nodes: readonly string[], cost: number) => {
      const end = nodes.at(-1) as string;
      if (end === target) found.push(cost);
      if (end === target || nodes.length > maxHops) return;
      // Of several edges between two nodes a path takes the cheapest.
      const cheapest = new Map<string, number>();
      for (const { to, weight } of this.#steps(end, 'out')) {
        const sum = add(cost, weight);
        if (!nodes.includes(to) && sum < (cheapest.get(to) ?? Infinity)) cheapest.set(to, sum);
      }
      for (const [to, sum] of cheapest) follow([...nodes, to], sum);
    };
    follow([start], first);
    return found
      .sort((left, right) => left - right)
      .slice(0, count)
      .map(shown);
  }

  /** Of every node the share of a walk that goes on with `damping`, and else begins anywhere; after that many rounds. */
  ranks(damping: number, rounds: number): Map<string, number> {
    const nodes = this.nodes();
    let ranks = new Map(nodes.map((key) => [key, 1 / nodes.length]));
    for (let round = 0; round < rounds; round += 1) {
      const next = new Map(nodes.map((key) => [key, 0]));
      let spread = 0;
      for (const [key, rank] of ranks) {
        const out = this.#out.get(key) ?? [];
        if (out.length === 0) spread += rank;
        for (const { target } of out) next.set(target, (next.get(target) ?? 0) + rank / out.length);
      }
      const everywhere = (1 - damping + damping * spread) / nodes.length;
      ranks = new Map([...next].map(([key, sum]) => [key, everywhere + damping * sum]));
    }
    return ranks;
  }

  /** Sizes of what hangs together, by the least key of each. */
  components(): Map<string, number> {
    const sizes = new Map<string, number>();
    const seen = new Set<string>();
    for (const first of this.nodes()) {
      if (seen.has(first)) continue;
      const found = [first];
      seen.add(first);
      for (const key of found) {
        for (const { to } of this.#steps(key, 'both')) {
          if (seen.has(to)) continue;
          seen.add(to);
          found.push(to);
        }
      }
      sizes.set(first, found.length);
    }
    return sizes;
  }

  /** Matches of a pattern from one node, as `plainMatches` shows them. */
  matches(start: string, elements: readonly ModelElement[]): string[] {
    const at = (key: string) => [...(this.#out.get(key) ?? []), ...(this.#in.get(key) ?? [])];
    return plainMatches(at, start, elements);
  }

  degree(key: string, direction: 'out' | 'in' | 'both'): number {
    return this.#steps(key, direction).length;
  }

  /** Whether every two neighbours of a path are joined. */
  isPath(nodes: readonly string[], direction: Direction): boolean {
    return nodes.every(
      (key, at) => at === 0 || this.#steps(nodes[at - 1] as string, direction).some(({ to }) => to === key),
    );
  }
}

function push(edges: Map<string, PlainEdge[]>, key: string, edge: PlainEdge): void {
  const known = edges.get(key);
  if (known) known.push(edge);
  else edges.set(key, [edge]);
}
