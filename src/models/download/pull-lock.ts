import { FileLock } from '../../storage/directory/file-lock.ts';
import { DownloadStopped } from './transfer/download-error.ts';

/** Keeps two pulls of the same model from running at once, in this process or in two. Throws `DownloadStopped`. */
export function lockPull(path: string): Disposable {
  const lock = FileLock.acquire(path);
  if (lock instanceof FileLock) return lock;
  throw new DownloadStopped(`process ${lock.heldBy} is pulling this model already`);
}
