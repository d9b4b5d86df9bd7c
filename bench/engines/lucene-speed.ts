import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { fetchJars } from '../processes/java.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';

const sources = join(import.meta.dir, '..', 'peers', 'lucene');

export interface LuceneSpeed {
  /** Bytes of the index of one segment. */
  bytes: number;
  docsPerSecond: number;
  /** By query, medians in microseconds: one segment, and as its own merges leave the index. */
  queries: { one: number; merged: number }[];
}

/** Both files are in the form of the program `text_speed`. */
export async function luceneSpeed(options: {
  java: string;
  documents: string;
  queries: string;
  rounds: number;
  /** Whether each document is stored as it was read. */
  stores?: boolean;
  placement: Placement;
}): Promise<LuceneSpeed> {
  const { java, documents, queries, rounds, stores = false, placement } = options;
  const classPath = await fetchJars('lucene-10.5.1', join(sources, 'pom.xml'));
  using directory = new TemporaryDirectory();
  const vector = ['--add-modules', 'jdk.incubator.vector'];
  const program = [join(sources, 'TextSpeed.java'), documents, queries, directory.path, String(rounds), String(stores)];
  const [index, ...lines] = await runPeerScript({
    name: 'Lucene',
    command: [java, ...vector, '-Xmx4g', '-cp', classPath, ...program],
    placement,
  });
  return {
    bytes: peerNumber(index, 'bytes'),
    docsPerSecond: peerNumber(index, 'docs_per_second'),
    queries: lines.map((line) => ({ one: peerNumber(line, 'one_us'), merged: peerNumber(line, 'merged_us') })),
  };
}
