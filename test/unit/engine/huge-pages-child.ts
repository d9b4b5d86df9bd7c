/**
 * Moves its machine code to huge pages while a worker and the event loop run
 * it; says what it was told, and what the system says.
 */
import { readFileSync } from 'node:fs';
import { moveCodeToHugePages } from '../../../src/engine/huge-pages.ts';
import { nativeAddon } from '../../../src/engine/native-addon.ts';

const busy =
  'const end = Date.now() + 60_000; postMessage(0); while (Date.now() < end) JSON.parse(JSON.stringify([1, { a: "b" }]));';
const worker = new Worker(URL.createObjectURL(new Blob([busy])));
await new Promise((resolve) => {
  worker.onmessage = resolve;
});

nativeAddon();
const files = codeOfFiles();
const moved = await moveCodeToHugePages();
const again = await moveCodeToHugePages();
worker.terminate();
process.stdout.write(JSON.stringify({ moved, again, left: files - codeOfFiles(), huge: codeInHugePages() }));
process.exit(0);

/** Bytes of machine code that are mapped from files. */
function codeOfFiles(): number {
  const mapped = readFileSync('/proc/self/maps', 'latin1').matchAll(/^(\w+)-(\w+) r-xp .* \//gm);
  return mapped.reduce((sum, [, from, to]) => sum + Number(`0x${to}`) - Number(`0x${from}`), 0);
}

function codeInHugePages(): number {
  const mappings = readFileSync('/proc/self/smaps', 'latin1').split(/^(?=\w+-\w+ )/m);
  return mappings
    .filter((mapping) => /^\S+ r-xp /.test(mapping))
    .reduce((sum, mapping) => sum + 1_024 * Number(/^AnonHugePages: +(\d+)/m.exec(mapping)?.[1]), 0);
}
