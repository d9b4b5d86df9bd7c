import type { BenchCase, BenchContext } from '../case.ts';
import { type GraphSearchAnswer, graphSearchNames, type LoadAnswer } from '../engines/graph-engine-commands.ts';
import { GraphEngineProcess, type GraphPeer, graphPeers } from '../engines/graph-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { knowsDebian } from '../workloads/debian-graph.ts';
import type { Graph } from '../workloads/graph.ts';

const nodes = { smoke: 5_000, full: 100_000, scale: 1_000_000 } as const;
const edgesPerNode = 10;
const searches = { smoke: 10, full: 20, scale: 20 } as const;
const pairsMax = 5;
/** Ours divided by the peer, in time: at least as fast as graphology, five times as fast as SQLite. */
const aims: Partial<Record<GraphPeer, number>> = { graphology: 1, sqlite: 1 / 5 };
const labels: Record<GraphPeer, string> = {
  graphology: 'graphology in memory',
  sqlite: 'SQLite, recursive query over integers',
  duckdb: 'DuckDB, recursive query over integers',
  ladybug: 'LadybugDB (Kùzu)',
};

export const graphSearches: BenchCase = {
  name: 'graph-searches',
  summary:
    'nodes within three hops and shortest paths in process, random and Debian, beside graphology, SQLite, DuckDB and LadybugDB',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { tier, seed } = context;
  const random = await searchesOf(context, 'random', { nodes: nodes[tier], edgesPerNode, seed });
  if (tier === 'smoke') return random;
  if (!(await knowsDebian())) {
    context.progress('no index of packages here: the graph of Debian is left out');
    return random;
  }
  return [...random, ...(await searchesOf(context, 'debian', { distribution: 'debian', seed }))];
}

/** All searches by all engines over one graph. */
async function searchesOf(
  { tier, placement, pairs, progress }: BenchContext,
  graphName: 'random' | 'debian',
  graph: Graph,
): Promise<Comparison[]> {
  const count = searches[tier];
  const names = ['sundew', ...graphPeers] as const;
  await using engines = new AsyncDisposableStack();
  const byName = Object.fromEntries(
    names.map((name) => [name, engines.use(new GraphEngineProcess(name, graph, placement))]),
  ) as Record<(typeof names)[number], GraphEngineProcess>;
  let size: LoadAnswer | undefined;
  for (const name of names) {
    progress(`loading ${name}, ${graphName}`);
    size = await byName[name].load();
  }
  const comparisons: Comparison[] = [];
  for (const search of graphSearchNames) {
    progress(`${search}, ${graphName}`);
    const sides = Object.fromEntries(names.map((name) => [name, () => byName[name].search(search, count)])) as Record<
      (typeof names)[number],
      () => Promise<GraphSearchAnswer>
    >;
    // The first turn compiles and warms what there is to warm.
    await alternate(sides, 1);
    const results = await alternate(sides, Math.min(pairs, pairsMax));
    for (const peer of graphPeers) {
      const [theirs, ours] = [results[peer], results.sundew];
      if (JSON.stringify(theirs[0]?.found) !== JSON.stringify(ours[0]?.found)) {
        throw new Error(`${search}: ${peer} finds ${theirs[0]?.found}, ours ${ours[0]?.found}`);
      }
      // The aims are those of a graph of a million edges: over few nodes the way into the engine is most of a search.
      const aim = graphName === 'random' ? aims[peer] : undefined;
      comparisons.push(
        compare({
          name: graphName === 'random' ? `${search}-${peer}` : `${graphName}-${search}-${peer}`,
          unit: 'us',
          ours: ours.map(({ us }) => us),
          peer: { name: labels[peer], values: theirs.map(({ us }) => us) },
          ...(aim === undefined ? {} : { aim: { kind: 'at_most', value: aim } }),
          notes: { ...size, searches: count },
        }),
      );
    }
  }
  return comparisons;
}
