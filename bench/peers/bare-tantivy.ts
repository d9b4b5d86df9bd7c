import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';

const native = join(import.meta.dir, '..', '..', 'native');
const program = join(native, 'target', 'release', 'examples', 'bare_tantivy');

/**
 * Documents a second of a bare Tantivy index over a document file, in one process with one indexing thread: with one commit at
 * the end, or with a commit and fsync per 1,000 documents. Builds the program when it is missing.
 */
export async function bareTantivyIngest(options: {
  file: string;
  commits: 'once' | 'per-batch';
  placement: Placement;
}): Promise<number> {
  await buildProgram(options.placement);
  using directory = new TemporaryDirectory();
  const commitEvery = options.commits === 'once' ? [] : ['--commit-every', '1000'];
  const [line] = await runPeerScript({
    name: 'bare_tantivy',
    command: [program, 'ingest', options.file, directory.path, '--threads', '1', ...commitEvery],
    placement: options.placement,
  });
  return peerNumber(line, 'docs_per_s');
}

async function buildProgram(placement: Placement): Promise<void> {
  if (existsSync(program)) return;
  const command = ['cargo', 'build', '--release', '--quiet', '--package', 'sundew-engine', '--example', 'bare_tantivy'];
  const build = Bun.spawn(placement.command('all', command), { cwd: native, stdio: ['ignore', 'inherit', 'inherit'] });
  if ((await build.exited) !== 0) throw new Error('the bare Tantivy program could not be built');
}
