import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { fetchJars } from '../processes/java.ts';
import { TextEngineProcess } from './text-engine-process.ts';

const sources = join(import.meta.dir, '..', 'peers', 'lucene');

/** Of one segment, and as its own merges leave it; `bytes` are those of the first. */
export type LuceneForm = 'one' | 'merged';

/** Both files are in the form of the program `text_speed`. */
export async function startLucene(options: {
  java: string;
  documents: string;
  queries: string;
  /** Whether each document is stored as it was read. */
  stores?: boolean;
  placement: Placement;
}): Promise<TextEngineProcess> {
  const { java, documents, queries, stores = false, placement } = options;
  const classPath = await fetchJars('lucene-10.5.1', join(sources, 'pom.xml'));
  const vector = ['--add-modules', 'jdk.incubator.vector'];
  const program = join(sources, 'TextSpeed.java');
  return TextEngineProcess.start({
    name: 'Lucene',
    command: (directory) => [
      ...[java, ...vector, '-Xmx4g', '-cp', classPath, program],
      ...[documents, queries, directory, String(stores)],
    ],
    placement,
  });
}
