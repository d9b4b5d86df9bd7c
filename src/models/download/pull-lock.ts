import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DownloadStopped } from './download-error.ts';

/** Keeps two processes from pulling the same model at once. A lock whose process is gone is taken over. */
export class PullLock implements Disposable {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    const own = `${process.pid} ${startOf(process.pid)}`;
    try {
      writeFileSync(path, own, { flag: 'wx' });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      const [pid = '', start = ''] = readFileSync(path, 'utf8').split(' ');
      const owner = Number(pid);
      if (owner !== process.pid && isAlive(owner) && startOf(owner) === start)
        throw new DownloadStopped(`process ${owner} is pulling this model already`);
      writeFileSync(path, own);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#path, { force: true });
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/**
 * When a process began, in the words of the system: in a container that is started again the same numbers belong to other
 * processes. Empty where the system does not say.
 */
function startOf(pid: number): string {
  try {
    // The name of the program, in parentheses, may have spaces; what follows has none.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
    return fields?.[19] ?? '';
  } catch {
    return '';
  }
}
