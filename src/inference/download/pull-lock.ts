import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DownloadStopped } from './download-error.ts';

/** Keeps two processes from pulling the same model at once. A lock whose process is gone is taken over. */
export class PullLock implements Disposable {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      const owner = Number(readFileSync(path, 'utf8'));
      if (owner !== process.pid && isAlive(owner))
        throw new DownloadStopped(`process ${owner} is pulling this model already`);
      writeFileSync(path, String(process.pid));
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
