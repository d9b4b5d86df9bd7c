import type { BenchCase, BenchContext } from '../case.ts';
import { type GraphSearchAnswer, graphSearchNames } from '../engines/graph-engine-commands.ts';
import { GraphEngineProcess, type GraphPeer, graphPeers } from '../engines/graph-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import type { RandomGraph } from '../workloads/random-graph.ts';

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
  summary: 'nodes within three hops and shortest paths in process, beside graphology, SQLite, DuckDB and LadybugDB',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { tier, seed, placement, pairs } = context;
  const graph: RandomGraph = { nodes: nodes[tier], edgesPerNode, seed };
  const count = searches[tier];
  const names = ['sundew', ...graphPeers] as const;
  await using engines = new AsyncDisposableStack();
  const byName = Object.fromEntries(
    names.map((name) => [name, engines.use(new GraphEngineProcess(name, graph, placement))]),
  ) as Record<(typeof names)[number], GraphEngineProcess>;
  for (const name of names) {
    context.progress(`loading ${name}`);
    await byName[name].load();
  }
  const comparisons: Comparison[] = [];
  for (const search of graphSearchNames) {
    context.progress(search);
    const sides = Object.fromEntries(names.map((name) => [name, () => byName[name].search(search, count)])) as Record<
      (typeof names)[number],
      () => Promise<GraphSearchAnswer>
    >;
    // The first turn compiles and warms what there is to warm.
    await alternate(sides, 1);
    const results = await alternate(sides, Math.min(pairs, pairsMax));
    const ours = results.sundew;
    for (const peer of graphPeers) {
      if (JSON.stringify(results[peer][0]?.found) !== JSON.stringify(ours[0]?.found)) {
        throw new Error(`${search}: ${peer} finds ${results[peer][0]?.found}, ours ${ours[0]?.found}`);
      }
      const aim = aims[peer];
      comparisons.push(
        compare({
          name: `${search}-${peer}`,
          unit: 'us',
          ours: ours.map(({ us }) => us),
          peer: { name: labels[peer], values: results[peer].map(({ us }) => us) },
          ...(aim === undefined ? {} : { aim: { kind: 'at_most', value: aim } }),
          notes: { nodes: graph.nodes, edges: graph.nodes * edgesPerNode, searches: count },
        }),
      );
    }
  }
  return comparisons;
}
