import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../workloads/document-file.ts';

/** A fresh directory on the disk that holds the repository (never a memory file system), removed at the end of the scope. */
export class TemporaryDirectory implements Disposable {
  readonly path: string;

  constructor() {
    mkdirSync(cacheDirectory, { recursive: true });
    this.path = mkdtempSync(join(cacheDirectory, 'data-'));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
