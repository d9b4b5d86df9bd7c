/**
 * Recursive queries of SQLite (`bun:sqlite`), answering the commands of `engines/graph-engine-commands.ts`. Edges are pairs of
 * integers, which is quicker than keys: the key of the start is looked up, those of the nodes found are not.
 */
import { Database, type Statement } from 'bun:sqlite';
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { serveGraphEngine } from '../engines/graph-engine-commands.ts';
import { edgesOf } from '../workloads/graph.ts';
import { nodeKey } from '../workloads/random-graph.ts';

let hops: Statement<{ found: number }, [string, string]> | undefined;
let path: Statement<{ depth: number }, [string, string]> | undefined;

await serveGraphEngine({
  async load(graph, directory) {
    const database = new Database(join(directory, 'graph.sqlite'));
    database.run('PRAGMA journal_mode = WAL');
    database.run('PRAGMA cache_size = -262144');
    database.run('CREATE TABLE nodes (id INTEGER PRIMARY KEY, key TEXT UNIQUE)');
    database.run('CREATE TABLE edges (source INTEGER, target INTEGER, PRIMARY KEY (source, target)) WITHOUT ROWID');
    const [node, edge] = ['INSERT INTO nodes VALUES (?, ?)', 'INSERT INTO edges VALUES (?, ?)'].map((sql) =>
      database.prepare(sql),
    );
    database.transaction(() => {
      for (let at = 0; at < graph.nodes; at += 1) node?.run(at, nodeKey(at));
      for (const [source, target] of edgesOf(graph)) edge?.run(source, target);
    })();
    const start = 'SELECT id, 0 FROM nodes WHERE key = ?1';
    const next = 'SELECT target, depth + 1 FROM reached JOIN edges ON source = node';
    hops = database.prepare(
      `WITH RECURSIVE reached (node, depth) AS (${start} UNION ${next} WHERE depth < 3)
       SELECT count(DISTINCT node) - 1 AS found FROM reached WHERE ?2 = ?2`,
    );
    // Rows come by depth, and the query ends with the first that is the target.
    path = database.prepare(
      `WITH RECURSIVE reached (node, depth) AS (${start} UNION ${next} WHERE depth < 20)
       SELECT depth FROM reached WHERE node = (SELECT id FROM nodes WHERE key = ?2) LIMIT 1`,
    );
  },
  threeHops(start) {
    return must(hops, 'a graph').get(nodeKey(start), '')?.found ?? 0;
  },
  shortestPath({ start, target }) {
    return must(path, 'a graph').get(nodeKey(start), nodeKey(target))?.depth ?? -1;
  },
});
