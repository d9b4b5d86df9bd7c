import { closeSync, existsSync, mkdirSync, openSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RangeId } from '../write-request.ts';
import { DataDirectoryError } from './data-directory-error.ts';
import { fileBytes } from './disk-usage.ts';
import { incarnationOf } from './index-directory.ts';

/** A range that the catalog names, with the incarnations of its indexes. */
export interface NamedRange {
  readonly generation: number;
  readonly incarnations: ReadonlySet<number>;
}

/** SQLite opens files by paths of up to 512 bytes, links resolved; those inside are up to a hundred bytes longer. */
const pathBytesMax = 400;

/** Paths inside a data directory. */
export class DataDirectory {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  get lockFile(): string {
    return join(this.root, 'LOCK');
  }

  get formatFile(): string {
    return join(this.root, 'format.json');
  }

  get catalogFile(): string {
    return join(this.root, 'catalog.db');
  }

  get secretsFile(): string {
    return join(this.root, 'secrets.json');
  }

  /** Room that is kept for a full disk (`disk-space.ts`). */
  get reserveFile(): string {
    return join(this.root, 'reserve');
  }

  get temporary(): string {
    return join(this.root, 'tmp');
  }

  get ranges(): string {
    return join(this.root, 'ranges');
  }

  rangeDirectory(rangeId: RangeId): string {
    return join(this.ranges, String(rangeId));
  }

  generationDirectory(rangeId: RangeId, generation: number): string {
    return join(this.rangeDirectory(rangeId), String(generation));
  }

  documentsFile(rangeId: RangeId, generation: number): string {
    return join(this.generationDirectory(rangeId, generation), 'documents.db');
  }

  /** The ranges that have a directory, named by the catalog or not. */
  rangeIds(): RangeId[] {
    return listDirectory(this.ranges).map(Number).filter(Number.isSafeInteger);
  }

  /** Where the indexes of a range generation live, one directory each. */
  indexesDirectory(rangeId: RangeId, generation: number): string {
    return join(this.generationDirectory(rangeId, generation), 'indexes');
  }

  /** Of these, the ranges that were not closed cleanly: a clean close leaves no write-ahead log, a mere look an empty one. */
  uncleanRanges(current: ReadonlyMap<RangeId, NamedRange>): RangeId[] {
    const hasLog = ([rangeId, { generation }]: [RangeId, NamedRange]) =>
      fileBytes(`${this.documentsFile(rangeId, generation)}-wal`) > 0;
    return [...current].filter(hasLog).map(([rangeId]) => rangeId);
  }

  /** Fails with `too_long` where files inside could not be opened. */
  refuseLongPath(): void {
    const bytes = Buffer.byteLength(existsSync(this.root) ? realpathSync(this.root) : resolve(this.root));
    if (bytes <= pathBytesMax) return;
    throw new DataDirectoryError(
      'too_long',
      `the path of the data directory has ${bytes} bytes, and ${pathBytesMax} are the most`,
      'give a directory with a shorter path, with --data-dir',
    );
  }

  /** Fails with `not_writable` where the catalog is there and this user may not write it, as after a command of another user. */
  refuseFixedCatalog(): void {
    for (const path of ['', '-wal', '-shm'].map((end) => `${this.catalogFile}${end}`)) {
      try {
        closeSync(openSync(path, 'r+'));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') continue;
        const reason = error instanceof Error ? error.message : String(error);
        const hint = 'give this user the right to write all files of the directory, as with chown';
        throw new DataDirectoryError('not_writable', `${path} cannot be written: ${reason}`, hint, error);
      }
    }
  }

  /** Whether users of the machine may read it who are neither its owner nor of its group. */
  isOpenToOthers(): boolean {
    return (statSync(this.root).mode & 0o007) !== 0;
  }

  /** Makes it where it is missing, or fails with `not_writable`. */
  make(): void {
    try {
      // Documents and hashes of passwords are in it. An existing directory keeps the mode that its owner gave it.
      mkdirSync(this.root, { recursive: true, mode: 0o700 });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const hint = 'give a directory, or a place where this user may make one, with --data-dir';
      throw new DataDirectoryError('not_writable', `${this.root} cannot be made: ${reason}`, hint, error);
    }
  }

  /**
   * Fails when a directory that has no format yet holds anything that is not ours: what a first start left that was
   * interrupted is.
   */
  refuseForeign(): void {
    const own =
      /^(LOCK|LOCK\.pid|LOCK-journal|format\.json\.new|catalog\.db(-wal|-shm|-journal)?|ranges|tmp|reserve|secret-store\.json(\.new)?|lost\+found)$/;
    const foreign = listDirectory(this.root).filter((name) => !own.test(name));
    if (foreign.length === 0) return;
    const names = foreign.slice(0, 3).join(', ') + (foreign.length > 3 ? ', ...' : '');
    throw new DataDirectoryError(
      'foreign',
      `${this.root} is not empty and holds no data of a server: ${names}`,
      'give an empty directory, or one that does not exist yet, with --data-dir',
    );
  }

  /**
   * Empties `tmp`, and removes what no catalog row names: ranges, their generations, and indexes of them. What cannot be
   * removed stays, and is among `left`, but for what is in `tmp`.
   */
  removeStrays(current: ReadonlyMap<RangeId, NamedRange>): { removed: string[]; left: string[] } {
    if (!existsSync(this.temporary)) mkdirSync(this.temporary, { recursive: true });
    for (const name of listDirectory(this.temporary)) tryToRemove(join(this.temporary, name));
    const [removed, left]: [string[], string[]] = [[], []];
    for (const path of this.#strays(current)) (tryToRemove(path) ? removed : left).push(path);
    return { removed, left };
  }

  #strays(current: ReadonlyMap<RangeId, NamedRange>): string[] {
    return listDirectory(this.ranges).flatMap((range) => {
      const named = current.get(Number(range));
      const place = join(this.ranges, range);
      if (!named) return [place];
      const generation = String(named.generation);
      const others = listDirectory(place).filter((name) => name !== generation);
      const indexes = this.indexesDirectory(Number(range), named.generation);
      const dropped = listDirectory(indexes).filter((name) => {
        const incarnation = incarnationOf(name);
        return incarnation !== undefined && !named.incarnations.has(incarnation);
      });
      return [...others.map((name) => join(place, name)), ...dropped.map((name) => join(indexes, name))];
    });
  }
}

function tryToRemove(path: string): boolean {
  try {
    rmSync(path, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
