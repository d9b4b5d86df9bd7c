import { extract } from 'tar-stream';
import { DownloadError } from '../transfer/download-error.ts';

export interface ArchiveEntry {
  readonly path: string;
  readonly type: 'file' | 'directory' | 'other';
}

/** Takes an entry's bytes as they come. */
interface EntrySink {
  write(bytes: Uint8Array): void;
  end(): void;
}

/** Says where an entry's bytes go; `undefined` passes over it. What it throws ends the reading. */
type ReceiveEntry = (entry: ArchiveEntry) => EntrySink | undefined;

const archiveName = /\.(?:zip|whl|tar|tar\.gz|tgz)$/i;

export function isArchive(path: string): boolean {
  return archiveName.test(path);
}

/**
 * Reads a `.zip`, `.whl`, `.tar`, `.tar.gz` or `.tgz` file from its beginning to its end, in little memory. A zip is left
 * as soon as `isEnough` says so.
 */
export async function readArchive(path: string, receive: ReceiveEntry, isEnough = () => false): Promise<void> {
  try {
    if (/\.(?:zip|whl)$/i.test(path)) await readZip(path, receive, isEnough);
    else await readTar(path, receive);
  } catch (error) {
    if (error instanceof DownloadError || (error instanceof Error && 'syscall' in error)) throw error;
    throw new DownloadError(`${path} is damaged: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function readZip(path: string, receive: ReceiveEntry, isEnough: () => boolean): Promise<void> {
  // Loaded where there is a zip: it brings threads of its own with it, which a start would wait for.
  const { Unzip, UnzipInflate } = await import('fflate');
  let open = 0;
  let entries = 0;
  const unzip = new Unzip((file) => {
    entries += 1;
    open += 1;
    const type = file.name.endsWith('/') ? 'directory' : 'file';
    const sink = receive({ path: file.name, type });
    file.ondata = (error, bytes, final) => {
      if (error !== null) throw error;
      sink?.write(bytes);
      if (!final) return;
      open -= 1;
      sink?.end();
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  for await (const piece of Bun.file(path).stream()) {
    unzip.push(piece, false);
    if (isEnough()) return;
  }
  unzip.push(new Uint8Array(), true);
  if (entries === 0) throw new DownloadError(`${path} is not a zip archive`);
  if (open > 0) throw new DownloadError(`${path} ends inside an entry`);
}

async function readTar(path: string, receive: ReceiveEntry): Promise<void> {
  const packed = /gz$/i.test(path);
  const bytes = Bun.file(path).stream();
  const plain = packed ? bytes.pipeThrough(new DecompressionStream('gzip')) : bytes;
  const tar = extract();
  const feed = async () => {
    for await (const piece of plain) {
      if (!tar.write(piece)) await new Promise((resolve) => tar.once('drain', () => resolve(undefined)));
    }
    tar.end(undefined);
  };
  const feeding = feed().catch((error: unknown) =>
    tar.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  for await (const entry of tar) {
    const { name, type } = entry.header;
    const known = type === 'file' || type === 'directory' ? type : 'other';
    const sink = receive({ path: name, type: known });
    for await (const piece of entry) sink?.write(piece as Uint8Array);
    sink?.end();
  }
  await feeding;
}
