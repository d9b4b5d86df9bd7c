import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { cacheDirectory } from '../workloads/document-file.ts';

const sources = join(import.meta.dir, '..', 'peers', 'lucene');
const jars = join(cacheDirectory, 'packages', 'lucene-10.5.1');
const javaVersionMin = 21;

export interface LuceneSpeed {
  /** Bytes of the index of one segment. */
  bytes: number;
  docsPerSecond: number;
  /** By query, medians in microseconds: one segment, and as its own merges leave the index. */
  queries: { one: number; merged: number }[];
}

/** A Java that runs Lucene 10, or why there is none here. */
export async function findJava(): Promise<{ java: string } | { missing: string }> {
  const homes = new Bun.Glob('/usr/lib/jvm/*/bin/java');
  const candidates = ['java', ...homes.scanSync({ absolute: true, onlyFiles: false })];
  for (const java of candidates) if ((await versionOf(java)) >= javaVersionMin) return { java };
  return { missing: `Lucene 10 needs Java ${javaVersionMin} or later, and Maven to fetch it` };
}

/** Both files are in the form of the program `text_speed`. */
export async function luceneSpeed(options: {
  java: string;
  documents: string;
  queries: string;
  rounds: number;
  placement: Placement;
}): Promise<LuceneSpeed> {
  const { java, documents, queries, rounds, placement } = options;
  await fetchLucene();
  using directory = new TemporaryDirectory();
  const vector = ['--add-modules', 'jdk.incubator.vector'];
  const program = [join(sources, 'TextSpeed.java'), documents, queries, directory.path, String(rounds)];
  const [index, ...lines] = await runPeerScript({
    name: 'Lucene',
    command: [java, ...vector, '-Xmx4g', '-cp', join(jars, '*'), ...program],
    placement,
  });
  return {
    bytes: peerNumber(index, 'bytes'),
    docsPerSecond: peerNumber(index, 'docs_per_second'),
    queries: lines.map((line) => ({ one: peerNumber(line, 'one_us'), merged: peerNumber(line, 'merged_us') })),
  };
}

async function versionOf(java: string): Promise<number> {
  const command = Bun.which(java);
  if (command === null) return 0;
  const child = Bun.spawn([command, '--version'], { stdout: 'pipe', stderr: 'ignore' });
  const text = await new Response(child.stdout).text();
  return Number(/ (\d+)[. ]/.exec(text)?.[1] ?? 0);
}

async function fetchLucene(): Promise<void> {
  if (existsSync(join(jars, 'fetched'))) return;
  mkdirSync(jars, { recursive: true });
  const pom = join(sources, 'pom.xml');
  const command = ['mvn', '--quiet', '--file', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`];
  const fetch = Bun.spawn(command, { stdio: ['ignore', 2, 2] });
  if ((await fetch.exited) !== 0) throw new Error('Maven could not fetch Lucene');
  await Bun.write(join(jars, 'fetched'), '');
}
