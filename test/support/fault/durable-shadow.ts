import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/**
 * The content of one directory on the disk after a power failure: kept by the fault library (see fault.c) while a process
 * runs, laid out again as a directory by `restore`.
 */
export class DurableShadow {
  readonly #from: string;
  readonly #to: string;

  /**
   * The files that are in `from` now count as durable.
   * @param from the data directory that is watched
   * @param to a directory of ours, made when missing
   */
  constructor(from: string, to: string) {
    this.#from = from;
    this.#to = to;
    for (const name of ['files', 'directories', 'lost', 'tmp']) mkdirSync(join(to, name), { recursive: true });
    this.#capture(from);
  }

  get environment(): Record<string, string> {
    return { FAULT_SHADOW_FROM: this.#from, FAULT_SHADOW_TO: this.#to };
  }

  /** The power fails: what was not durable is gone from the watched directory. */
  replace(): void {
    const survived = `${this.#from}-survived`;
    this.restore(survived);
    rmSync(this.#from, { recursive: true });
    renameSync(survived, this.#from);
  }

  /** Writes what was durable to `target`, which is emptied first. The watched directory must still exist. */
  restore(target: string): void {
    rmSync(target, { recursive: true, force: true });
    this.#restoreDirectory(identity(this.#from), target);
  }

  #capture(directory: string): void {
    const lines: string[] = [];
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      const id = identity(path);
      if (statSync(path).isDirectory()) {
        lines.push(`d ${id} ${name}\n`);
        this.#capture(path);
      } else {
        lines.push(`f ${id} ${name}\n`);
        copyFileSync(path, join(this.#to, 'files', id));
      }
    }
    writeFileSync(join(this.#to, 'directories', identity(directory)), lines.join(''));
  }

  #restoreDirectory(id: string, target: string): void {
    mkdirSync(target, { recursive: true });
    const list = join(this.#to, 'directories', id);
    if (!existsSync(list)) return;
    for (const line of readFileSync(list, 'utf8').split('\n')) {
      const [kind, child, ...name] = line.split(' ');
      if (!child) continue;
      const path = join(target, name.join(' '));
      if (kind === 'd') this.#restoreDirectory(child, path);
      else this.#restoreFile(child, path);
    }
  }

  #restoreFile(id: string, path: string): void {
    const bytes = join(this.#to, 'files', id);
    if (existsSync(bytes)) copyFileSync(bytes, path);
    else writeFileSync(path, '');
  }
}

/** As fault.c writes it: inode number and birth time. */
function identity(path: string): string {
  const info = statSync(path, { bigint: true });
  return `${info.ino}-${info.birthtimeNs / 1_000_000_000n}-${info.birthtimeNs % 1_000_000_000n}`;
}
