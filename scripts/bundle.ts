import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { SourceStamp } from './source-stamp.ts';

// This file runs on a bare checkout: nothing outside the runtime and this folder may be imported.

const root = new URL('../', import.meta.url).pathname;
const sources = join(root, 'src');
const folder = join(root, 'build', 'server');
/** The bundle holds the paths of this checkout, and bytecode is of one version of the runtime. */
const stamp = new SourceStamp(join(root, 'build', 'server.hash'), bundledFiles, `${Bun.version}\0${root}\0`);

/** The server's bundled entry, beside those of its workers and child processes. */
export const bundledMain = join(folder, 'main.js');

/** Packages that load files of their own by path, or native code. */
const externalPackages = ['@echogarden/kissfft-wasm', '@hyzyla/pdfium', 'node-llama-cpp', 'onnxruntime-node', 'sharp'];

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
    define: { SUNDEW_BUNDLE: JSON.stringify(folder) },
    throw: false,
  };
  const all = entries();
  // Bytecode needs the CommonJS form, which cannot load node-llama-cpp: an asynchronous module.
  const compiled = all.filter((entry) => !isModelHost(entry));
  const built = [
    await Bun.build({ ...shared, entrypoints: compiled, format: 'cjs', bytecode: true }),
    await Bun.build({ ...shared, entrypoints: all.filter(isModelHost), format: 'esm' }),
  ];
  const failed = built.find(({ success }) => !success);
  if (failed !== undefined) throw new Error(`The server could not be bundled: ${failed.logs.join('\n')}`);
  requireBytecode(fresh, compiled);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  renameSync(fresh, folder);
  stamp.write(hash);
}

/** Bun leaves the bytecode out without a word where an entry uses what CommonJS has no form for. */
function requireBytecode(bundle: string, compiled: readonly string[]): void {
  for (const entry of compiled) {
    if (existsSync(join(bundle, `${basename(entry, '.ts')}.js.jsc`))) continue;
    throw new Error(`${relative(root, entry)} has no bytecode: it uses import.meta.resolve or a top-level await`);
  }
}

/** Every file that a process or a thread starts with. */
function entries(): string[] {
  const isEntry = (path: string) => /(\.worker|\/pull-child|\/src\/main)\.ts$/.test(path) || isModelHost(path);
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
