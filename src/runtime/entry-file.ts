import { basename, join } from 'node:path';

/**
 * The folder of the bundle that runs. Every file of a bundle begins with it
 * (`scripts/bundle.ts`); it is absent where the sources run.
 */
declare const SUNDEW_BUNDLE: string | undefined;

/**
 * The file to start for a worker or a child process whose source is `source`, as in
 * `entryFile(new URL('./name.worker.ts', import.meta.url))`: the source itself, or the file of the same name in the
 * bundle that runs.
 */
export function entryFile(source: URL): string {
  const path = Bun.fileURLToPath(source);
  return typeof SUNDEW_BUNDLE === 'undefined' ? path : join(SUNDEW_BUNDLE, basename(path).replace(/\.ts$/, '.js'));
}
