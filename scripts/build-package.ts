import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import packageFile from '../package.json' with { type: 'json' };
import { bundleClient, writeTypes } from './build-client.ts';
import { buildBundleApart, bundledMain } from './bundle.ts';
import { setUpOrExit } from './setup.ts';

// usage: bun scripts/build-package.ts
// Writes two packages to build/package, each as a folder and a tarball: `sundew`, which is the same for all machines, and
// `sundew-PLATFORM-ARCH` with the native engine of the machine that it runs on. docs/releasing.md says how they are published.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const folder = join(root, 'build/package');
const { version, license, description, engines, dependencies } = packageFile;

/** The machines that an engine is published for. */
const platforms = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'] as const;

/**
 * The bundle, whose bytecode is of one version of the runtime: another version compiles it at each start. The demo runs the
 * sources, because its data is a package that is not in the bundle.
 */
const bin = `#!/usr/bin/env bun
await import(Bun.argv[2] === 'demo' ? '../src/main.ts' : '../build/server/main.js');
`;

/** The exports of `src/embedded.ts`; its own declarations would name the whole server. */
const embeddedTypes = `import type { OpenDatabase } from './client/embedded-database.js';
export { SundewError } from './client/client.js';
export type { EmbeddedDatabase, OpenOptions } from './client/embedded-database.js';
export declare const open: OpenDatabase;
`;

/** The sources, which Bun runs as they are for a program that embeds the database, and their bundle for the command. */
async function writeMainPackage(): Promise<string> {
  const target = join(folder, 'sundew');
  mkdirSync(join(target, 'bin'), { recursive: true });
  mkdirSync(join(target, 'models'));
  cpSync(join(root, 'src'), join(target, 'src'), { recursive: true });
  await buildBundleApart();
  cpSync(dirname(bundledMain), join(target, 'build/server'), { recursive: true });
  for (const file of new Bun.Glob('*.json').scanSync(join(root, 'models'))) {
    copyFileSync(join(root, 'models', file), join(target, 'models', file));
  }
  for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md']) copyFileSync(join(root, file), join(target, file));
  copyFileSync(join(root, 'scripts/needs-bun.mjs'), join(target, 'needs-bun.mjs'));
  await Bun.write(join(target, 'bin/sundew.ts'), bin);
  chmodSync(join(target, 'bin/sundew.ts'), 0o755);
  await bundleClient(target);
  await writeTypes(join(root, 'src/client/embedded-database.ts'), join(target, 'types'));
  await Bun.write(join(target, 'types/embedded.d.ts'), embeddedTypes);
  const manifest = {
    name: 'sundew',
    version,
    description,
    license,
    type: 'module',
    exports: {
      '.': { types: './types/embedded.d.ts', bun: './src/embedded.ts', default: './needs-bun.mjs' },
      './client': { types: './types/client/client.d.ts', bun: './src/client/client.ts', default: './client.js' },
    },
    bin: { sundew: 'bin/sundew.ts' },
    engines,
    dependencies,
    optionalDependencies: Object.fromEntries(platforms.map((platform) => [`sundew-${platform}`, version])),
  };
  await writeManifest(target, manifest);
  return target;
}

async function writeEnginePackage(): Promise<string> {
  const { platform, arch } = process;
  const name = `sundew-${platform}-${arch}`;
  const file = `sundew.${platform}-${arch}.node`;
  const built = join(root, 'native', file);
  if (!existsSync(built)) throw new Error('the native engine is not built; run: bun run build:native --profile dist');
  const target = join(folder, name);
  mkdirSync(target, { recursive: true });
  copyFileSync(built, join(target, file));
  copyFileSync(join(root, 'LICENSE'), join(target, 'LICENSE'));
  const only = { os: [platform], cpu: [arch], ...(platform === 'linux' ? { libc: ['glibc'] } : {}) };
  await writeManifest(target, {
    name,
    version,
    description: `The native engine of sundew for ${platform}-${arch}`,
    license,
    main: file,
    files: [file],
    ...only,
  });
  return target;
}

function writeManifest(target: string, manifest: object): Promise<number> {
  return Bun.write(join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The tarball of a package, beside its folder. */
async function pack(target: string): Promise<string> {
  const child = Bun.spawn([process.execPath, 'pm', 'pack', '--quiet', '--ignore-scripts', '--destination', folder], {
    cwd: target,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = (await new Response(child.stdout).text()).trim();
  if ((await child.exited) !== 0) throw new Error(`${target} could not be packed`);
  return output.split('\n').at(-1) ?? '';
}

/** Writes both packages and their tarballs. Returns the tarballs, that of `sundew` first. */
export async function buildPackages(): Promise<string[]> {
  rmSync(folder, { recursive: true, force: true });
  const targets = [await writeMainPackage(), await writeEnginePackage()];
  return await Promise.all(targets.map(pack));
}

if (import.meta.main) {
  await setUpOrExit('developing');
  for (const tarball of await buildPackages()) process.stdout.write(`${tarball}\n`);
}
