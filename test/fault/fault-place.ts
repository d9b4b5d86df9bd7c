import { type Dirent, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildServer, type ChildServerOptions } from '../support/fault/child-server.ts';
import { FaultControl } from '../support/fault/fault-control.ts';

/** A data directory of one test, with the switchboard of its disk; removed at the end of the scope. */
export class FaultPlace implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'sundew-row-'));
  readonly dataDir = join(this.directory, 'data');
  readonly control: FaultControl;

  constructor() {
    mkdirSync(this.dataDir);
    this.control = new FaultControl(join(this.directory, 'control'));
  }

  start(options: Partial<ChildServerOptions> = {}): Promise<ChildServer> {
    return ChildServer.start({ dataDir: this.dataDir, control: this.control, ...options });
  }

  /** Files of the data directory whose path contains `part`, sorted. */
  files(part: string): string[] {
    const found: string[] = [];
    const walk = (directory: string) => {
      for (const entry of entriesOf(directory)) {
        const path = join(directory, entry.name);
        if (entry.isDirectory()) walk(path);
        else if (path.slice(this.dataDir.length).includes(part)) found.push(path);
      }
    };
    walk(this.dataDir);
    return found.sort();
  }

  /** The one file whose path contains `part`. */
  file(part: string): string {
    const [found, ...others] = this.files(part);
    if (!found || others.length > 0) throw new Error(`${others.length + (found ? 1 : 0)} files match "${part}"`);
    return found;
  }

  /** Hash of every file by path: what must not change where nothing may be written. */
  fingerprint(): Record<string, string> {
    const hashes = this.files('').map((path) => [
      path.slice(this.dataDir.length),
      Bun.hash(readFileSync(path)).toString(),
    ]);
    return Object.fromEntries(hashes);
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** None where the server has removed the directory meanwhile. */
function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
