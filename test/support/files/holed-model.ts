import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../../src/lib/assert.ts';

/** The head of a table of 128 words with 32 numbers each, as the fixture models have it. */
const tableHead = Uint8Array.of(0x4a, 0x80, 0x80, 0x01);
const rowBytes = 32 * 4;

/** Makes the numbers of one word of a fixture model those that are none, so that all it says of a text with it is none. */
export function holeModel(directory: string, word: string): void {
  const file = join(directory, 'onnx/model.onnx');
  const { model } = JSON.parse(readFileSync(join(directory, 'tokenizer.json'), 'utf8'));
  const bytes = readFileSync(file);
  const start = bytes.indexOf(tableHead) + tableHead.length + must(model.vocab[word], 'a word') * rowBytes;
  for (let at = start; at < start + rowBytes; at += 4) bytes.writeFloatLE(Number.NaN, at);
  writeFileSync(file, bytes);
}
