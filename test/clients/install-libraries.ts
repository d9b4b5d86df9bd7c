import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = Bun.fileURLToPath(new URL('../../', import.meta.url));
const sources = join(root, 'test/clients');
const installed = join(root, 'build/clients');

/** A folder with libraries of one registry, and how a program beside them is run. */
export interface Environment {
  readonly folder: string;
  readonly run: readonly string[];
}

/** Packages of npm, at the versions of `node/bun.lock`. */
export async function nodeEnvironment(): Promise<Environment> {
  const folder = join(installed, 'node');
  mkdirSync(folder, { recursive: true });
  const lock = readFileSync(join(sources, 'node/bun.lock'), 'utf8');
  for (const name of readdirSync(join(sources, 'node'))) cpSync(join(sources, 'node', name), join(folder, name));
  await once(folder, lock, [[process.execPath, 'install', '--ignore-scripts', '--frozen-lockfile']]);
  return { folder, run: [Bun.which('node') ?? process.execPath] };
}

/** Packages of PyPI, at the versions of `python/NAME.txt`. */
export async function pythonEnvironment(name: string): Promise<Environment> {
  const folder = join(installed, `python-${name}`);
  const requirements = join(sources, `python/${name}.txt`);
  const python = join(folder, 'bin/python');
  await once(folder, readFileSync(requirements, 'utf8'), [
    [process.env.PYTHON ?? 'python3', '-m', 'venv', folder],
    [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements],
  ]);
  return { folder: join(sources, 'python'), run: [python] };
}

/** The version of each package that is named, as it is pinned. */
export function pinnedVersions(): ReadonlyMap<string, string> {
  const { dependencies } = JSON.parse(readFileSync(join(sources, 'node/package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const versions = new Map(Object.entries(dependencies).map(([name, version]) => [`npm:${name}`, version]));
  for (const file of ['agents', 'frameworks', 'official']) {
    for (const line of readFileSync(join(sources, `python/${file}.txt`), 'utf8')
      .trim()
      .split('\n')) {
      const [name = '', version = ''] = line.split('==');
      versions.set(`pypi:${name}`, version);
    }
  }
  return versions;
}

/** Runs the commands in the folder unless they have been run for the same input. */
async function once(folder: string, input: string, commands: readonly (readonly string[])[]): Promise<void> {
  const stamp = join(folder, '.installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === input) return;
  mkdirSync(folder, { recursive: true });
  for (const command of commands) {
    const child = Bun.spawn([...command], { cwd: folder, stdio: ['ignore', 2, 2] });
    if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} failed; the messages above say why`);
  }
  writeFileSync(stamp, input);
}
