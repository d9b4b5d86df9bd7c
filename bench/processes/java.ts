import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../workloads/document-file.ts';

const javaVersionMin = 21;

/** A Java that runs the peers, or why there is none here. */
export async function findJava(): Promise<{ java: string } | { missing: string }> {
  const homes = new Bun.Glob('/usr/lib/jvm/*/bin/java');
  const candidates = ['java', ...homes.scanSync({ absolute: true, onlyFiles: false })];
  for (const java of candidates) if ((await versionOf(java)) >= javaVersionMin) return { java };
  return { missing: `the peer needs Java ${javaVersionMin} or later, and Maven to fetch its packages` };
}

async function versionOf(java: string): Promise<number> {
  const command = Bun.which(java);
  if (command === null) return 0;
  const child = Bun.spawn([command, '--version'], { stdout: 'pipe', stderr: 'ignore' });
  const text = await new Response(child.stdout).text();
  return Number(/ (\d+)[. ]/.exec(text)?.[1] ?? 0);
}

/** Fetches what `pom.xml` names unless it is there; returns the class path. `name` has the version in it. */
export async function fetchJars(name: string, pom: string): Promise<string> {
  const jars = join(cacheDirectory, 'packages', name);
  const classPath = join(jars, '*');
  if (existsSync(join(jars, 'fetched'))) return classPath;
  mkdirSync(jars, { recursive: true });
  const command = ['mvn', '--quiet', '--file', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`];
  const fetch = Bun.spawn(command, { stdio: ['ignore', 2, 2] });
  if ((await fetch.exited) !== 0) throw new Error(`Maven could not fetch ${name}`);
  await Bun.write(join(jars, 'fetched'), '');
  return classPath;
}
