import { type ModelElement, plainMatches } from './plain-matches.ts';

/** An edge of the model. */
export interface ModelEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
}

/** A graph as plain maps: what a graph index has to answer, by the simplest code there is. */
export class AdjacencyMap {
  /** Documents, each with its edges by type and target. */
  readonly #documents = new Map<string, Map<string, ModelEdge>>();

  keys(): string[] {
    return [...this.#documents.keys()].sort();
  }

  /** Writes a document; without edges it keeps those that it has. */
  put(source: string, edges?: readonly Omit<ModelEdge, 'source'>[]): void {
    const held = this.#documents.get(source) ?? new Map<string, ModelEdge>();
    this.#documents.set(source, held);
    if (!edges) return;
    held.clear();
    for (const edge of edges) held.set(`${edge.type}\0${edge.target}`, { source, ...edge });
  }

  /** Deletes a document with its edges in both directions. */
  delete(key: string): void {
    if (!this.#documents.delete(key)) return;
    for (const edges of this.#documents.values()) {
      for (const [place, { target }] of edges) if (target === key) edges.delete(place);
    }
  }

  edges(): ModelEdge[] {
    return [...this.#documents.values()].flatMap((edges) => [...edges.values()]);
  }

  /** Edges of a node as the wire orders them. */
  of(key: string, direction: 'out' | 'in'): ModelEdge[] {
    const mine = this.edges().filter((edge) => edge[direction === 'out' ? 'source' : 'target'] === key);
    const other = direction === 'out' ? 'target' : 'source';
    return mine.sort((left, right) => compare(left.type, right.type) || compare(left[other], right[other]));
  }

  /** Depth of every node that a start reaches, by the edges of a direction that a caller may follow. */
  reached(start: string, direction: 'out' | 'in', maxDepth: number, isShown = (_: string) => true): [string, number][] {
    const depths = new Map([[start, 0]]);
    if (!isShown(start)) return [];
    let level = [start];
    for (let depth = 1; depth <= maxDepth && level.length > 0; depth += 1) {
      const ends = level.flatMap((key) =>
        this.of(key, direction).map(({ source, target }) => (direction === 'out' ? target : source)),
      );
      level = [...new Set(ends)].filter((key) => !depths.has(key) && isShown(key));
      for (const key of level) depths.set(key, depth);
    }
    depths.delete(start);
    return [...depths].sort(([left, a], [right, b]) => a - b || compare(left, right));
  }

  /** Matches of a pattern, as `plainMatches` shows them. */
  matches(start: string, elements: readonly ModelElement[], isShown = (_: string) => true): string[] {
    const at = (key: string) => this.edges().filter(({ source, target }) => source === key || target === key);
    return plainMatches(at, start, elements, isShown);
  }

  /** The least sum of weights from a node to another by Bellman and Ford; undefined where no way leads. */
  leastSum(source: string, target: string, maxHops: number): number | undefined {
    let sums = new Map([[source, 0]]);
    for (let hop = 0; hop < maxHops; hop += 1) {
      const next = new Map(sums);
      for (const { source, target, weight } of this.edges()) {
        const sum = sums.get(source);
        if (sum !== undefined && sum + weight < (next.get(target) ?? Number.POSITIVE_INFINITY))
          next.set(target, sum + weight);
      }
      sums = next;
    }
    return sums.get(target);
  }
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
