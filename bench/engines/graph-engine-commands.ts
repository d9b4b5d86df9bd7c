import { jsonLines } from '../processes/line-process.ts';
import { type Adjacency, adjacencyOf, type Graph, type NodePair, nodePairs } from '../workloads/graph.ts';

/** The answers of every engine: the nodes within three hops, and the hops of a shortest path (-1 for none). */
export const graphSearchNames = ['three-hops', 'shortest-path'] as const;
export type GraphSearchName = (typeof graphSearchNames)[number];

interface LoadCommand {
  op: 'load';
  graph: Graph;
  /** An empty directory for what is written. */
  directory: string;
}

interface SearchCommand {
  op: 'search';
  name: GraphSearchName;
  graph: Graph;
  /** How many pairs of nodes are asked for. */
  count: number;
}

/** How large the graph is. */
export interface LoadAnswer {
  nodes: number;
  edges: number;
}

export type GraphCommand = LoadCommand | SearchCommand;

export interface GraphSearchAnswer {
  /** Mean time of one search. */
  us: number;
  /** The result for each pair: a number of nodes, or of hops. */
  found: number[];
}

/** An engine in its own process. A search that answers at once is not awaited. */
export interface GraphEngine {
  load(graph: Adjacency, directory: string): Promise<void>;
  threeHops(start: number): number | Promise<number>;
  shortestPath(pair: NodePair): number | Promise<number>;
}

/** Pairs are asked for again until this much time has passed, so that quick engines are measured as long as slow ones. */
const turnMs = 300;

/** Obeys commands from standard input until it ends. */
export async function serveGraphEngine(engine: GraphEngine): Promise<void> {
  let adjacency: Adjacency | undefined;
  for await (const line of jsonLines(Bun.stdin.stream())) {
    const command = JSON.parse(line) as GraphCommand;
    adjacency ??= await adjacencyOf(command.graph);
    let answer: object = { nodes: adjacency.nodes, edges: adjacency.targets.length };
    if (command.op === 'load') await engine.load(adjacency, command.directory);
    else answer = await runSearches(engine, nodePairs(command.graph, adjacency, command.count), command.name);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}

async function runSearches(
  engine: GraphEngine,
  pairs: readonly NodePair[],
  name: GraphSearchName,
): Promise<GraphSearchAnswer> {
  const count = pairs.length;
  const found: number[] = [];
  const start = performance.now();
  let asked = 0;
  while (asked < count || performance.now() - start < turnMs) {
    const pair = pairs[asked % count] as NodePair;
    const answer = name === 'three-hops' ? engine.threeHops(pair.start) : engine.shortestPath(pair);
    const number = answer instanceof Promise ? await answer : answer;
    if (asked < count) found.push(number);
    asked += 1;
  }
  return { us: ((performance.now() - start) * 1_000) / asked, found };
}
