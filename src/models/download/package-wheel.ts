import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { downloadEnvironment } from '../../config/child-environment.ts';
import { DownloadError, DownloadStopped } from './download-error.ts';
import type { PackageAddress } from './source-address.ts';

interface RunOptions {
  readonly signal?: AbortSignal;
  /** Where it may put what it needs meanwhile. */
  readonly temporary: string;
}

/** Runs a program; answers its exit code and what it wrote to its standard error. */
export type RunProgram = (command: string[], options: RunOptions) => Promise<{ code: number; errors: string }>;

const runProgram: RunProgram = async (command, { signal, temporary }) => {
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...downloadEnvironment(), TMPDIR: temporary },
    ...(signal === undefined ? {} : { signal }),
  });
  const errors = await new Response(child.stderr).text();
  return { code: await child.exited, errors };
};

/**
 * The wheel of a package, fetched by pip: it knows the index, the mirrors, the certificates and the credentials of this
 * machine. Nothing of the package is run. Answers the wheel's path; one that is there already is taken.
 */
export async function packageWheel(
  address: PackageAddress,
  directory: string,
  { signal, run = runProgram }: { signal?: AbortSignal; run?: RunProgram } = {},
): Promise<string> {
  const name = `${address.name}-${address.version}`;
  const wheel = join(directory, `${name}.whl`);
  if (await Bun.file(wheel).exists()) return wheel;
  const incoming = join(directory, `${name}.incoming`);
  const clear = () => rmSync(incoming, { recursive: true, force: true });
  clear();
  mkdirSync(incoming, { recursive: true });
  try {
    renameSync(await downloaded(address, incoming, run, signal), wheel);
  } finally {
    // pip does not go on with what it had begun.
    clear();
  }
  return wheel;
}

async function downloaded(
  { name, version }: PackageAddress,
  incoming: string,
  run: RunProgram,
  signal: AbortSignal | undefined,
): Promise<string> {
  const options = ['--quiet', '--no-input', '--disable-pip-version-check', '--no-deps', '--no-cache-dir'];
  const kinds = ['--only-binary', ':all:', '--ignore-requires-python'];
  const { code, errors } = await run(
    [...pip(), 'download', ...options, ...kinds, '--dest', incoming, `${name}==${version}`],
    { temporary: incoming, ...(signal && { signal }) },
  );
  if (signal?.aborted) throw new DownloadStopped('the download was cancelled');
  if (code !== 0) throw new DownloadError(`pip could not fetch ${name}: ${lastLine(errors)}`);
  const [file, ...others] = readdirSync(incoming).filter((each) => each.endsWith('.whl'));
  if (file === undefined || others.length > 0) throw new DownloadError(`pip did not bring one wheel of ${name}`);
  return join(incoming, file);
}

function pip(): string[] {
  const alone = ['pip3', 'pip'].find((name) => Bun.which(name) !== null);
  if (alone !== undefined) return [alone];
  if (Bun.which('python3') !== null) return ['python3', '-m', 'pip'];
  throw new DownloadError('packages are fetched by pip, which is not installed');
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.slice(0, 500) ?? '';
}
