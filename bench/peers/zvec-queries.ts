/**
 * Loads a document file into a zvec collection with a full-text index, asks the queries of a file, top ten, and prints
 * one line of JSON for each with its median time in microseconds. Loading and optimising happen before the clock starts.
 * `--file FILE --queries FILE --directory DIR --repeats N`
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ZVecCollectionSchema, ZVecCreateAndOpen, ZVecDataType, ZVecIndexType } from '@zvec/zvec';
import { scriptArguments } from '../engines/script-arguments.ts';
import { median } from '../measure/statistics.ts';

const { file, queries, directory, repeats } = scriptArguments('file', 'queries', 'directory', 'repeats');
const batchSize = 1_000;
const indexParams = { indexType: ZVecIndexType.FTS, filters: ['lowercase', 'stemmer'] };
const schema = new ZVecCollectionSchema({
  name: 'texts',
  vectors: [],
  fields: [{ name: 'body', dataType: ZVecDataType.STRING, indexParams }],
});
const collection = ZVecCreateAndOpen(join(directory, 'collection'), schema);
const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
for (let start = 0; start < lines.length; start += batchSize) {
  const documents = lines.slice(start, start + batchSize).map((line, offset) => {
    const { body } = JSON.parse(line) as { body: string };
    return { id: `doc${start + offset}`, fields: { body } };
  });
  const failed = collection.insertSync(documents).find((status) => !status.ok);
  if (failed) throw new Error(`zvec refused a document: ${failed.message}`);
}
collection.optimizeSync();
for (const line of readFileSync(queries, 'utf8').trimEnd().split('\n')) {
  const { kind, text } = JSON.parse(line) as { kind: string; text: string };
  const query = {
    fieldName: 'body',
    topk: 10,
    fts: { matchString: text },
    outputFields: [],
    params: { indexType: ZVecIndexType.FTS, defaultOperator: kind === 'and' ? 'AND' : 'OR' },
  };
  const times: number[] = [];
  for (let turn = 0; turn < Number(repeats); turn += 1) {
    const start = performance.now();
    collection.querySync(query);
    times.push((performance.now() - start) * 1_000);
  }
  console.log(JSON.stringify({ p50_micros: median(times) }));
}
collection.closeSync();
