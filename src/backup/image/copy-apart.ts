import { entryFile } from '../../runtime/entry-file.ts';
import { startChild } from '../../runtime/start-child.ts';

const childFile = entryFile(new URL('./copy-child.ts', import.meta.url));

/**
 * Copies a file that this process has open as a database, in a process of its own: to close another descriptor of it here
 * would give back the locks on it (`fcntl(2)`), and a program from outside that closes it then takes itself for the last
 * one, and removes its log. Throws an Error with the code of the system.
 */
export async function copyApart(from: string, to: string): Promise<void> {
  const child = startChild('a process that copies a file', () =>
    Bun.spawn([process.execPath, childFile, from, to], { stdio: ['ignore', 'pipe', 'ignore'], env: {} }),
  );
  const [code, exitCode] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  if (exitCode === 0) return;
  throw Object.assign(new Error(`a file of a range could not be copied: ${code || `exit code ${exitCode}`}`), { code });
}
