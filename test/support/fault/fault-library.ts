import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

const source = join(import.meta.dir, 'fault.c');
const buildDirectory = join(import.meta.dir, '../../../build');

/**
 * Path of the preloaded fault library, compiled on first use and kept under the hash of its source.
 * @throws with one sentence when there is no C compiler or the source does not compile.
 */
export async function faultLibrary(): Promise<string> {
  const text = await Bun.file(source).text();
  const library = join(buildDirectory, `fault-${Bun.hash(text).toString(16)}.so`);
  if (existsSync(library)) return library;
  const compiler = Bun.which('gcc') ?? Bun.which('cc');
  if (!compiler) throw new Error('the fault tests need a C compiler: install gcc');
  mkdirSync(buildDirectory, { recursive: true });
  const fresh = `${library}.${process.pid}`;
  const build = Bun.spawnSync([compiler, '-shared', '-fPIC', '-O1', '-o', fresh, source, '-ldl', '-lpthread'], {
    stderr: 'pipe',
  });
  if (build.exitCode !== 0) throw new Error(`the fault library does not compile: ${build.stderr.toString()}`);
  renameSync(fresh, library);
  return library;
}
