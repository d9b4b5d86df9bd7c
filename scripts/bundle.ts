import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { SourceStamp } from './source-stamp.ts';

// This file runs on a bare checkout: nothing outside the runtime and this folder may be imported.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const sources = join(root, 'src');
const folder = join(root, 'build', 'server');
/** Bytecode is of one version of the runtime. */
const stamp = new SourceStamp(join(root, 'build', 'server.hash'), bundledFiles, `${Bun.version}\0`);

/** The server's bundled entry, beside those of its workers and child processes. */
export const bundledMain = join(folder, 'main.js');

/** From the folder of the bundle to that of the sources, in a checkout as in the published package. */
const toSources = '../../src/';

/** Packages that load files of their own by path, or native code. */
const externalPackages = [
  '@echogarden/kissfft-wasm',
  '@hyzyla/pdfium',
  '@jitl/quickjs-wasmfile-release-sync',
  'node-llama-cpp',
  'onnxruntime-node',
  'sharp',
];

/** Whether the bundle was made from the sources as they are now, at this place and by this version of the runtime. */
export function bundleIsCurrent(): boolean {
  return existsSync(bundledMain) && stamp.isCurrent();
}

/**
 * Bundles the server with its workers and child processes as bytecode: a process then loads one file that is compiled
 * already instead of some hundred modules. Throws an Error that names what could not be bundled.
 */
export async function buildBundle(): Promise<void> {
  const hash = stamp.hashOfContents();
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  const shared: Omit<Bun.BuildConfig, 'entrypoints'> = {
    outdir: fresh,
    naming: '[name].[ext]',
    target: 'bun',
    external: [...externalPackages, '*.node'],
    plugins: [placesOfSources, separateEntries],
    throw: false,
  };
  const all = entries();
  // Bytecode needs the CommonJS form, which cannot load node-llama-cpp: an asynchronous module.
  const compiled = all.filter((entry) => !isModelHost(entry));
  const built = [
    await Bun.build({ ...shared, entrypoints: compiled, format: 'cjs', bytecode: true, banner: bannerOf('__dirname') }),
    await Bun.build({
      ...shared,
      entrypoints: all.filter(isModelHost),
      format: 'esm',
      // In one file the native code of all backends would be loaded by every child.
      splitting: true,
      banner: bannerOf('import.meta.dir'),
    }),
  ];
  const failed = built.find(({ success }) => !success);
  if (failed !== undefined) throw new Error(`The server could not be bundled: ${failed.logs.join('\n')}`);
  requireBytecode(fresh, compiled);
  requireRelocatable(fresh);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  renameSync(fresh, folder);
  stamp.write(hash);
}

/**
 * The same in a process of its own: one that was there before the packages were installed does not find them. Throws an
 * Error; what could not be bundled is named on standard error.
 */
export async function buildBundleApart(): Promise<void> {
  const bundling = Bun.spawn([process.execPath, import.meta.path], { cwd: root, stdio: ['ignore', 2, 2] });
  if ((await bundling.exited) !== 0) throw new Error('The messages above say why there is no bundle.');
}

/** The beginning of a bundled file: where it lies, which only the file itself knows once it is installed. */
function bannerOf(place: string): string {
  return `const SUNDEW_BUNDLE = ${place}, SUNDEW_SOURCES = new URL("${toSources}", Bun.pathToFileURL(SUNDEW_BUNDLE + "/"));`;
}

/** The bundler would write down where a source lies now: a bundle that is installed elsewhere has to work it out. */
const placesOfSources: Bun.BunPlugin = {
  name: 'places of sources',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const url = `new URL(${JSON.stringify(relative(sources, path))}, SUNDEW_SOURCES)`;
      const contents = text
        .replaceAll('import.meta.url', `${url}.href`)
        .replaceAll('import.meta.dir', `Bun.fileURLToPath(new URL(".", ${url}))`);
      return { contents, loader: 'ts' };
    });
  },
};

/** Sources with a bundle of their own, which is read when it is asked for: a start does not wait for what it does without. */
const loadedAlone = /\/(loaded-later|other-verbs|read-yaml|call-router|handlebars-syntax|scrub-html|encode-toon)\.ts$/;

/** Keeps these out of the bundles that load them. */
const separateEntries: Bun.BunPlugin = {
  name: 'separate entries',
  setup(build) {
    build.onResolve({ filter: loadedAlone }, ({ path, importer }) => {
      return importer === '' ? undefined : { path: `./${basename(path, '.ts')}.js`, external: true };
    });
  },
};

/** Bun leaves the bytecode out without a word where an entry uses what CommonJS has no form for. */
function requireBytecode(bundle: string, compiled: readonly string[]): void {
  for (const entry of compiled) {
    if (existsSync(join(bundle, `${basename(entry, '.ts')}.js.jsc`))) continue;
    throw new Error(`${relative(root, entry)} has no bytecode: it uses import.meta.resolve or a top-level await`);
  }
}

/** A path of this machine would not be there where the bundle is installed. */
function requireRelocatable(bundle: string): void {
  for (const file of readdirSync(bundle).filter((name) => name.endsWith('.js'))) {
    const [path] = readFileSync(join(bundle, file), 'utf8').split(root)[1]?.split(/["'`]/) ?? [];
    if (path !== undefined) throw new Error(`the bundled ${file} holds the path of ${path}: make its package external`);
  }
}

/** Every file that a process or a thread starts with, or that is loaded by itself. */
function entries(): string[] {
  const isEntry = (path: string) =>
    /(\.worker|\/pull-child|\/sql-child|\/copy-child|\/src\/main)\.ts$/.test(path) ||
    loadedAlone.test(path) ||
    isModelHost(path);
  return sourceFiles().filter(isEntry);
}

function isModelHost(path: string): boolean {
  return path.endsWith('/host-main.ts');
}

function sourceFiles(): string[] {
  return readdirSync(sources, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function bundledFiles(): string[] {
  return [...sourceFiles(), join(root, 'package.json'), join(root, 'bun.lock'), import.meta.path];
}

if (import.meta.main) {
  try {
    await buildBundle();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
