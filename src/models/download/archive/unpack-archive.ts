import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MiB } from '../../../lib/units.ts';
import { writeWhole } from '../../../storage/directory/synced-file.ts';
import { isInnerPath } from '../source-address.ts';
import { DownloadError } from '../transfer/download-error.ts';
import { type ArchiveEntry, readArchive } from './read-archive.ts';

interface UnpackOptions {
  readonly entriesMax: number;
  /** Of all entries together. */
  readonly bytesMax: number;
  /** How many times larger than the archive its entries may be; weights hardly shrink. */
  readonly growthMax: number;
}

const unpackOptions: UnpackOptions = { entriesMax: 10_000, bytesMax: 1024 * 1024 * MiB, growthMax: 100 };

/** Small archives of text may well shrink more than the bound says. */
const growthFreeBytes = 8 * MiB;

/**
 * Unpacks an archive into an empty folder. Refuses it at the first entry that would leave the folder, that is neither
 * file nor directory, that comes twice, or that makes the whole too large. Hidden entries are left out.
 */
export async function unpackArchive(
  path: string,
  folder: string,
  options: UnpackOptions = unpackOptions,
): Promise<void> {
  const most = Math.min(options.bytesMax, Math.max(growthFreeBytes, Bun.file(path).size * options.growthMax));
  const seen = new Set<string>();
  let bytes = 0;
  await readArchive(path, (entry) => {
    seen.add(checkEntry(entry, seen));
    if (seen.size > options.entriesMax) throw new DownloadError(`it has more than ${options.entriesMax} entries`);
    if (entry.type === 'directory' || isHidden(entry.path)) return undefined;
    const target = join(folder, entry.path);
    mkdirSync(dirname(target), { recursive: true });
    const descriptor = openSync(target, 'wx', 0o644);
    return {
      write(piece) {
        bytes += piece.byteLength;
        if (bytes > most) {
          closeSync(descriptor);
          throw new DownloadError(`its entries have more than ${most} bytes, out of proportion to the archive`);
        }
        writeWhole(descriptor, piece);
      },
      end: () => closeSync(descriptor),
    };
  });
}

function checkEntry({ path, type }: ArchiveEntry, seen: ReadonlySet<string>): string {
  const plain = path.replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
  const inner = plain
    .split('/')
    .map((segment) => (/^\.[^.]/.test(segment) ? segment.slice(1) : segment))
    .join('/');
  if (plain !== '' && plain !== '.' && !isInnerPath(inner)) {
    throw new DownloadError(`the entry "${path.slice(0, 200)}" leaves the folder`);
  }
  if (type === 'other') throw new DownloadError(`the entry "${path.slice(0, 200)}" is a link or a device`);
  if (seen.has(plain)) throw new DownloadError(`the entry "${path.slice(0, 200)}" is there twice`);
  return plain;
}

function isHidden(path: string): boolean {
  return path.split('/').some((segment) => segment.startsWith('.') && segment !== '.');
}
