import { rmSync } from 'node:fs';
import { join } from 'node:path';
import packageFile from '../package.json' with { type: 'json' };
import { setUpOrExit } from './setup.ts';

// usage: bun scripts/build-client.ts
// Writes the client for Node and browsers, and its types, to build/client: a folder that installers take.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const entry = join(root, 'src/client/client.ts');

/** Bundles the client as one module that imports nothing. Throws an Error that names what could not be bundled. */
export async function bundleClient(outdir: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [entry], outdir, target: 'browser', format: 'esm', throw: false });
  if (!built.success) throw new Error(`the client could not be bundled: ${built.logs.join('\n')}`);
  return join(outdir, 'client.js');
}

/** Declarations of a module and of what it names. */
export async function writeTypes(source: string, outDir: string): Promise<void> {
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--rewriteRelativeImportExtensions'];
  const given = ['--ignoreConfig', '--target', 'ESNext', '--module', 'Preserve', '--moduleResolution', 'bundler'];
  const strict = ['--strict', '--skipLibCheck', '--lib', 'ESNext,DOM,DOM.AsyncIterable', '--types', 'bun'];
  const command = [join(root, 'node_modules/.bin/tsc'), source, ...options, ...given, ...strict, '--outDir', outDir];
  const child = Bun.spawn(command, { cwd: root, stdio: ['ignore', 2, 2] });
  if ((await child.exited) !== 0) throw new Error(`the types of ${source} could not be written`);
}

/** Writes the client alone: the module, its types, and a manifest that names the package which the types read. */
export async function writeClient(outdir: string): Promise<void> {
  await bundleClient(outdir);
  await writeTypes(entry, outdir);
  const { version, license, dependencies } = packageFile;
  const manifest = {
    name: 'sundew-client',
    version,
    description: 'The client of sundew for Node and browsers',
    license,
    type: 'module',
    exports: { types: './client/client.d.ts', default: './client.js' },
    dependencies: { '@sinclair/typebox': dependencies['@sinclair/typebox'] },
  };
  await Bun.write(join(outdir, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

if (import.meta.main) {
  await setUpOrExit('developing');
  const folder = join(root, 'build/client');
  rmSync(folder, { recursive: true, force: true });
  await writeClient(folder);
}
