import { constants, promises as fs } from 'node:fs';
import { join } from 'node:path';
import { failpoint } from '../../lib/failpoint.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { openReader } from '../../storage/connection.ts';
import { indexDirectory } from '../../storage/directory/index-directory.ts';
import type { Storage } from '../../storage/open-storage.ts';
import type { ImageFile } from '../archive/manifest.ts';
import type { Copier } from '../copy/copier.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import { copyApart } from './copy-apart.ts';
import { copyLog } from './copy-log.ts';
import { documentsLogPath, documentsPath } from './image-path.ts';

/** A file that belongs to an image: the first `bytes` bytes of it. */
interface HeldFile {
  /** As the archive names it. */
  path: string;
  /** On this machine. */
  source: string;
  bytes: number;
}

interface IndexIdentity {
  name: string;
  incarnation: number;
}

interface ImageTarget {
  readonly store: ObjectStore;
  fileName(file: number): string;
}

/** The members of `checkpoint.json` that are needed here (`native/base/src/checkpoint_files.rs`). */
interface CheckpointText {
  checkpoint: string;
}

/** A checkpoint of an index replaces its files; one that does while they are linked is linked instead. */
const attemptsMax = 10;

/**
 * The files of a range as they are: links to the checkpoints of its indexes, and behind them a copy of its documents, so that
 * no index is ahead of its documents. The caller keeps the feed from forgetting anything until the image is taken.
 */
export class RangeImage implements AsyncDisposable {
  readonly #folder: string;
  readonly #files: HeldFile[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async take(
    storage: Storage,
    range: { rangeId: number; generation: number },
    indexes: readonly IndexIdentity[],
  ): Promise<RangeImage> {
    const { directory } = storage;
    const image = new RangeImage(join(directory.temporary, `image-${crypto.randomUUID()}`));
    try {
      await fs.mkdir(image.#folder, { recursive: true });
      for (const index of indexes) {
        const from = indexDirectory(directory.indexesDirectory(range.rangeId, range.generation), index);
        await image.#linkIndex(from, index.incarnation);
      }
      failpoint('backup.after-links');
      // Pages that are left in the log are copied with it, and taken into the file by a restore.
      await storage.walCheckpoint(range.rangeId);
      await image.#copyDocuments(directory.documentsFile(range.rangeId, range.generation));
      return image;
    } catch (error) {
      await image[Symbol.asyncDispose]();
      throw failed(error);
    }
  }

  /** Writes all files into the archive. */
  async write(copier: Copier, target: ImageTarget, signal: AbortSignal): Promise<ImageFile[]> {
    const written: ImageFile[] = [];
    for (const [at, { path, source, bytes }] of this.#files.entries()) {
      const { file } = await copier.write(target.store, target.fileName(at), undefined, (writer) =>
        writer.all('bytes', { path: source, after: 0, end: bytes }, () => signal.throwIfAborted()),
      );
      written.push({ path, file });
      failpoint('backup.after-image-file');
    }
    return written;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A folder that cannot be removed now is removed at the next start.
    await fs.rm(this.#folder, { recursive: true, force: true }).catch(() => undefined);
  }

  /** An index without a checkpoint has no files: it is built from the documents. */
  async #linkIndex(from: string, incarnation: number): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const to = join(this.#folder, String(incarnation));
      await fs.mkdir(to, { recursive: true });
      const text = await fs.readFile(join(from, 'checkpoint.json')).catch((error: unknown) => {
        if (codeOf(error) === 'ENOENT') return undefined;
        throw error;
      });
      if (!text) return;
      const files = filesOf(text);
      try {
        for (const { name } of files) await linkOrCopy(join(from, name), join(to, name));
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' || attempt === attemptsMax) throw error;
        await fs.rm(to, { recursive: true, force: true });
        continue;
      }
      await fs.writeFile(join(to, 'checkpoint.json'), text);
      for (const { name, bytes } of [...files, { name: 'checkpoint.json', bytes: text.byteLength }]) {
        this.#files.push({ path: `indexes/${incarnation}/${name}`, source: join(to, name), bytes });
      }
      return;
    }
  }

  /**
   * The reader keeps frames that the file does not have from being overwritten. Pages that the file gets meanwhile are in the log
   * as well, and of one log any beginning will do, so the two copies together are the range at one instant.
   */
  async #copyDocuments(path: string): Promise<void> {
    const database = openReader(path);
    try {
      database.run('BEGIN');
      // The instant of a reader is that of its first read.
      database.query('SELECT purged_through FROM range_identity').get();
      const [documents, log] = [join(this.#folder, documentsPath), join(this.#folder, documentsLogPath)];
      await copyApart(path, documents);
      await copyLog(`${path}-wal`, log, cloneFile);
      for (const [name, source] of [
        [documentsPath, documents],
        [documentsLogPath, log],
      ] as const) {
        const { size } = await fs.stat(source);
        if (size > 0) this.#files.push({ path: name, source, bytes: size });
      }
    } finally {
      database.close();
    }
  }
}

/** Shares the blocks of the file where the file system can. */
function cloneFile(from: string, to: string): Promise<void> {
  return fs.copyFile(from, to, constants.COPYFILE_FICLONE);
}

function filesOf(text: Uint8Array): { name: string; bytes: number }[] {
  const { checkpoint } = JSON.parse(Buffer.from(text).toString()) as CheckpointText;
  return (JSON.parse(checkpoint) as { files: { name: string; bytes: number }[] }).files;
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await fs.link(from, to).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw error;
    // Not every file system has links.
    return fs.copyFile(from, to);
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function failed(error: unknown): unknown {
  const code = codeOf(error);
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const message = 'the data directory has no room for a copy of a range; make room, or take the format "portable"';
  return new ServiceError('insufficient_storage', message, { cause: error });
}
