/**
 * `bun run words [--rows N] [--url URL]`: loads word vectors through the public interface, shows what is near, and compares
 * answers with exact ones. Without `--url` it starts a server of its own and removes it at the end. Ends with 1 when recall
 * is below 0.95.
 */
import { parseArgs } from 'node:util';
import { DemoClient } from '../../src/cli/demo/demo-client.ts';
import { DemoServer } from '../../src/cli/demo/demo-server.ts';
import { bold, dim, fit, standardTerminal } from '../../src/cli/demo/terminal.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { recallOf } from '../measure/recall.ts';
import { ExactWords, fused } from './exact-words.ts';
import { defined, hybrid, hybridWindow, nearest, nearestBeginningAs, rankConstant } from './word-queries.ts';
import { initialOf, loadWords, readWords, rowOf, table } from './word-table.ts';

const limit = 10;
const comparedWords = 100;
const recallMin = 0.95;
const terminal = standardTerminal();

const { values } = parseArgs({ options: { rows: { type: 'string' }, url: { type: 'string' } } });
terminal.write(dim(terminal, 'Reading the word vectors; the first time, 307 MB are installed under bench/.cache\n'));
const set = await readWords(readRowCount(values.rows));
const exact = new ExactWords(set);
await using server = values.url === undefined ? await DemoServer.start(systemClock) : undefined;
const client = new DemoClient(values.url ?? server?.url ?? '', systemClock);
await loadWords(client, set, terminal, systemClock);
await show('Near', 'volcano', (vector) => nearest(vector, limit));
await show('Near', 'cheese', (vector) => nearest(vector, limit));
await show('Near, beginning with b', 'paris', (vector) => nearestBeginningAs('b', vector, limit));
await show('Near, or defined by "sea"', 'storm', (vector) => hybrid('sea', vector, limit));
process.exitCode = (await compareWithExact()) ? 0 : 1;

function readRowCount(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const rows = Number(text);
  if (!Number.isSafeInteger(rows) || rows < 1) throw new Error('--rows takes a whole number of at least 1');
  return rows;
}

async function show(title: string, word: string, request: (vector: Float32Array) => object): Promise<void> {
  const vector = exact.vectorOf(word);
  if (!vector) return;
  const { hits, roundTripMs } = await client.query(table, request(vector));
  const words = fit(hits.flatMap((hit) => hit.words).join(', '), terminal.columns - 2);
  terminal.write(
    `\n${bold(terminal, `${title}: ${word}`)}  ${dim(terminal, `${roundTripMs.toFixed(1)} ms`)}\n  ${words}\n`,
  );
}

/** Asks for words from all frequencies in three ways; whether enough of the exact answers were found. */
async function compareWithExact(): Promise<boolean> {
  const rows = Array.from({ length: comparedWords }, (_, at) => Math.floor((at * set.words.length) / comparedWords));
  const ask = async (request: object) => (await client.query(table, request)).hits.map(rowOf);
  const found: Record<string, number[][]> = { nearest: [], filtered: [], hybrid: [] };
  const truth: Record<string, number[][]> = { nearest: [], filtered: [], hybrid: [] };
  for (const row of rows) {
    const word = set.words[row] ?? '';
    const vector = exact.vector(row);
    const initial = initialOf(word);
    found.nearest?.push(await ask(nearest(vector, limit)));
    truth.nearest?.push(exact.nearest(vector, limit));
    found.filtered?.push(await ask(nearestBeginningAs(word, vector, limit)));
    truth.filtered?.push(exact.nearest(vector, limit, (other) => initialOf(set.words[other] ?? '') === initial));
    found.hybrid?.push(await ask(hybrid(word, vector, limit)));
    const byText = await ask(defined(word, hybridWindow));
    truth.hybrid?.push(fused([byText, exact.nearest(vector, hybridWindow)], rankConstant, limit));
  }
  terminal.write(`\n${bold(terminal, `Beside exact answers, ${comparedWords} words, ${limit} hits each`)}\n`);
  const recalls = Object.keys(found).map((kind) => ({ kind, recall: recallOf(found[kind] ?? [], truth[kind] ?? []) }));
  for (const { kind, recall } of recalls) terminal.write(`  ${kind.padEnd(10)} recall ${recall.toFixed(3)}\n`);
  return recalls.every(({ recall }) => recall >= recallMin);
}
