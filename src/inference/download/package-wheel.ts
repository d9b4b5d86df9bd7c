import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DownloadError, DownloadStopped } from './download-error.ts';
import type { PackageAddress } from './source-address.ts';

/** Runs a program; answers its exit code and what it wrote to its standard error. */
export type RunProgram = (command: string[], signal?: AbortSignal) => Promise<{ code: number; errors: string }>;

const runProgram: RunProgram = async (command, signal) => {
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'ignore', 'pipe'],
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
  { name, version }: PackageAddress,
  directory: string,
  { signal, run = runProgram }: { signal?: AbortSignal; run?: RunProgram } = {},
): Promise<string> {
  const wheel = join(directory, `${name}-${version}.whl`);
  if (await Bun.file(wheel).exists()) return wheel;
  const incoming = join(directory, `${name}-${version}.incoming`);
  rmSync(incoming, { recursive: true, force: true });
  mkdirSync(incoming, { recursive: true });
  const options = ['--quiet', '--no-input', '--disable-pip-version-check', '--no-deps', '--no-cache-dir'];
  const kinds = ['--only-binary', ':all:', '--ignore-requires-python'];
  const { code, errors } = await run(
    [...pip(), 'download', ...options, ...kinds, '--dest', incoming, `${name}==${version}`],
    signal,
  );
  if (signal?.aborted) throw new DownloadStopped('the download was cancelled');
  if (code !== 0) throw new DownloadError(`pip could not fetch ${name}: ${lastLine(errors)}`);
  const [file, ...others] = readdirSync(incoming).filter((each) => each.endsWith('.whl'));
  if (file === undefined || others.length > 0) throw new DownloadError(`pip did not bring one wheel of ${name}`);
  renameSync(join(incoming, file), wheel);
  rmSync(incoming, { recursive: true, force: true });
  return wheel;
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
