/** The dependencies of all packages of a Debian release, as `apt-cache dumpavail` of this machine says. */
export interface DebianGraph {
  distribution: 'debian';
  seed: number;
}

/** Whether this machine knows of the packages of a release, not only of those that it has installed. */
export async function knowsDebian(): Promise<boolean> {
  if (Bun.which('apt-cache') === null) return false;
  return Object.keys(await dependenciesOf()).length >= packagesMin;
}

/** Packages of a release are counted in ten thousands, those of an image without an index in hundreds. */
const packagesMin = 10_000;

/**
 * Packages by name, and names that packages depend on without being one, alternatives and `Pre-Depends` included. Numbers are
 * ranks of names; the targets of a node ascend, without itself.
 */
export async function debianTargets() {
  const dependencies = await dependenciesOf();
  const names = [...new Set(Object.entries(dependencies).flatMap(([name, needed]) => [name, ...needed]))].sort();
  const ranks = new Map(names.map((name, rank) => [name, rank]));
  const starts = new Uint32Array(names.length + 1);
  const targets: number[] = [];
  for (const [rank, name] of names.entries()) {
    const own = new Set((dependencies[name] ?? []).filter((needed) => needed !== name));
    targets.push(...[...own].map((needed) => ranks.get(needed) ?? 0).sort((left, right) => left - right));
    starts[rank + 1] = targets.length;
  }
  return { nodes: names.length, starts, targets: Uint32Array.from(targets) };
}

/** By package the names that it depends on. */
async function dependenciesOf(): Promise<Record<string, string[]>> {
  const child = Bun.spawn(['apt-cache', 'dumpavail'], { stdout: 'pipe', stderr: 'ignore' });
  const text = await new Response(child.stdout).text();
  const dependencies: Record<string, string[]> = Object.create(null);
  for (const paragraph of text.split('\n\n')) {
    const name = /^Package: (\S+)/m.exec(paragraph)?.[1];
    if (name === undefined) continue;
    const lines = [...paragraph.matchAll(/^(?:Pre-)?Depends: (.*)$/gm)];
    const needed = lines.flatMap(([, list = '']) => list.split(/[,|]/));
    // A name may be followed by an architecture and by a version.
    dependencies[name] = needed.flatMap((each) => /^\s*([^\s:(]+)/.exec(each)?.[1] ?? []);
  }
  return dependencies;
}
