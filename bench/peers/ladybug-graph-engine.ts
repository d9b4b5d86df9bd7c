/**
 * LadybugDB, which goes on with Kùzu: an embedded graph database, in memory, answering the commands of
 * `engines/graph-engine-commands.ts`.
 */
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { serveGraphEngine } from '../engines/graph-engine-commands.ts';
import { installPackage, loadPackage } from '../processes/cached-package.ts';
import { edgesOf } from '../workloads/graph.ts';
import { nodeKey } from '../workloads/random-graph.ts';

interface Result {
  getAll(): Promise<Record<string, unknown>[]>;
}
type Prepared = object;
interface Connection {
  query(text: string): Promise<Result>;
  prepare(text: string): Promise<Prepared>;
  execute(prepared: Prepared, values: Record<string, string>): Promise<Result>;
}

await installPackage('@ladybugdb/core');
const { Database, Connection } = loadPackage<{
  Database: new (path: string) => object;
  Connection: new (database: object) => Connection;
}>('@ladybugdb/core');
let connection: Connection | undefined;
let hops: Prepared | undefined;
let path: Prepared | undefined;

async function ask(prepared: Prepared | undefined, values: Record<string, string>): Promise<number> {
  const answer = await must(connection, 'a graph').execute(must(prepared, 'a statement'), values);
  return Number((await answer.getAll())[0]?.found ?? -1);
}

await serveGraphEngine({
  async load(graph, directory) {
    connection = new Connection(new Database(':memory:'));
    await connection.query('CREATE NODE TABLE Node (key STRING, PRIMARY KEY (key))');
    await connection.query('CREATE REL TABLE Edge (FROM Node TO Node)');
    const [nodes, edges] = [join(directory, 'nodes.csv'), join(directory, 'edges.csv')];
    await Bun.write(nodes, Array.from({ length: graph.nodes }, (_, node) => nodeKey(node)).join('\n'));
    const lines = Array.from(edgesOf(graph), ([source, target]) => `${nodeKey(source)},${nodeKey(target)}`);
    await Bun.write(edges, lines.join('\n'));
    await connection.query(`COPY Node FROM '${nodes}'`);
    await connection.query(`COPY Edge FROM '${edges}'`);
    hops = await connection.prepare(
      'MATCH (a:Node)-[:Edge* SHORTEST 1..3]->(b:Node) WHERE a.key = $start AND b.key <> $start RETURN count(*) AS found',
    );
    path = await connection.prepare(
      'MATCH p = (a:Node)-[:Edge* SHORTEST 1..20]->(b:Node) WHERE a.key = $start AND b.key = $target RETURN length(p) AS found',
    );
  },
  threeHops: (start) => ask(hops, { start: nodeKey(start) }),
  shortestPath: ({ start, target }) => ask(path, { start: nodeKey(start), target: nodeKey(target) }),
});
