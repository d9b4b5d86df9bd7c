/**
 * Loads a document file into a DuckDB table in memory, asks the aggregations, and prints one line of JSON with the
 * median time of each in microseconds. Loading happens before the clock starts, and the table holds only the columns
 * that are asked for, so this is the peer at its best.
 * `--file FILE --repeats N`
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { scriptArguments } from '../engines/script-arguments.ts';
import { median } from '../measure/statistics.ts';
import { aggregationQueries } from '../workloads/aggregation-queries.ts';

const { file, repeats } = scriptArguments('file', 'repeats');
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const columns = "{year: 'INTEGER', category: 'VARCHAR'}";
const source = `read_json('${file.replaceAll("'", "''")}', format = 'newline_delimited', columns = ${columns})`;
await connection.run(`CREATE TABLE documents AS SELECT year, category FROM ${source}`);
const times: Record<string, number> = {};
for (const { name, sql } of aggregationQueries) {
  await connection.runAndReadAll(sql);
  const turns: number[] = [];
  for (let turn = 0; turn < Number(repeats); turn += 1) {
    const start = performance.now();
    (await connection.runAndReadAll(sql)).getRows();
    turns.push((performance.now() - start) * 1_000);
  }
  times[name] = median(turns);
}
console.log(JSON.stringify(times));
connection.closeSync();
