/**
 * Recursive queries of DuckDB in memory, answering the commands of `engines/graph-engine-commands.ts`. Edges are pairs of
 * integers; a search for a path goes level by level and ends with the level that holds the target.
 */
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { must } from '../../src/lib/assert.ts';
import { serveGraphEngine } from '../engines/graph-engine-commands.ts';
import { edgesOf } from '../workloads/graph.ts';

let connection: DuckDBConnection | undefined;

const hops = `
  WITH RECURSIVE reached (node, depth) AS (
    SELECT $start::INTEGER, 0
    UNION SELECT target, depth + 1 FROM reached JOIN edges ON source = node WHERE depth < 3
  ) SELECT count(DISTINCT node)::INTEGER - 1 FROM reached`;
const path = `
  WITH RECURSIVE reached (node, depth) USING KEY (node) AS (
    SELECT $start::INTEGER, 0
    UNION SELECT target, depth + 1 FROM reached JOIN edges ON source = node
    WHERE depth < 20 AND NOT EXISTS (SELECT 1 FROM recurring.reached AS known WHERE known.node = target)
      AND NOT EXISTS (SELECT 1 FROM recurring.reached AS known WHERE known.node = $target::INTEGER)
  ) SELECT coalesce(min(depth), -1)::INTEGER FROM reached WHERE node = $target::INTEGER`;

async function ask(sql: string, values: Record<string, number>): Promise<number> {
  const answer = await must(connection, 'a graph').runAndReadAll(sql, values);
  return Number(answer.getRows()[0]?.[0]);
}

await serveGraphEngine({
  async load(graph) {
    connection = await (await DuckDBInstance.create(':memory:')).connect();
    await connection.run('CREATE TABLE edges (source INTEGER, target INTEGER)');
    const appender = await connection.createAppender('edges');
    for (const [source, target] of edgesOf(graph)) {
      appender.appendInteger(source);
      appender.appendInteger(target);
      appender.endRow();
    }
    appender.closeSync();
    await connection.run('CREATE INDEX by_source ON edges (source)');
  },
  threeHops: (start) => ask(hops, { start }),
  shortestPath: ({ start, target }) => ask(path, { start, target }),
});
