import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';

const native = join(import.meta.dir, '..', '..', 'native');

/** Where cargo puts an example of the engine. */
export function exampleProgram(name: string): string {
  return join(native, 'target', 'release', 'examples', name);
}

/** Builds an example of the engine, which costs nothing when it is built already. */
export async function buildExample(name: string, placement: Placement): Promise<void> {
  const command = ['cargo', 'build', '--release', '--quiet', '--package', 'sundew-engine', '--example', name];
  const build = Bun.spawn(placement.command('all', command), { cwd: native, stdio: ['ignore', 'inherit', 'inherit'] });
  if ((await build.exited) !== 0) throw new Error(`the program ${name} could not be built`);
}
