import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isModelName } from '../protocol/models/model-kinds.ts';
import { syncPath } from '../storage/directory/synced-file.ts';
import { isArchive } from './download/archive/read-archive.ts';
import { unpackArchive } from './download/archive/unpack-archive.ts';
import { digestFaults, fileDigest, filesBelow } from './file-digests.ts';
import { describeModel, type InstalledModel } from './installed-model.ts';
import { ModelFileError } from './model-file-error.ts';
import { manifestFile, readManifest } from './model-folder.ts';
import { type ModelLocation, modelDirectory } from './model-location.ts';

/** Throws `ModelFileError` when no model can be put there. */
export function checkIsFree(location: ModelLocation): void {
  const target = modelDirectory(location);
  if (!isModelName(location.name))
    throw new ModelFileError(`"${location.name}" is not a name: letters, digits, . _ and -`);
  if (existsSync(target)) throw new ModelFileError(`${target} exists already; remove it first, or give another --name`);
}

/**
 * Copies a folder, one .gguf or .onnx file, or what an archive holds among the models. The copy is checked while no
 * server looks at it and appears whole, with the digests of its files in its manifest, or not at all.
 * Throws `ModelFileError` and `DownloadError`.
 */
export async function importModel(source: string, location: ModelLocation): Promise<InstalledModel> {
  checkIsFree(location);
  const stat = statSync(source, { throwIfNoEntry: false });
  if (stat === undefined) throw new ModelFileError(`${source} does not exist`);
  const incoming = join(location.modelsDirectory, location.kind, `.incoming-${crypto.randomUUID()}`);
  try {
    mkdirSync(incoming, { recursive: true });
    if (stat.isDirectory()) copyFiles(source, incoming);
    else if (isArchive(source)) await unpackArchive(source, incoming);
    else copyFileSync(source, join(incoming, `model${endingOf(source)}`));
    const folder = stat.isDirectory() ? incoming : innermostFolder(incoming);
    const faults = digestFaults(folder, readManifest(folder).digests ?? {});
    if (faults.length > 0) throw new ModelFileError(`the files differ from their manifest: ${faults.join('; ')}`);
    return publishModel(folder, location);
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
}

/**
 * Describes the model whose files lie complete in a folder beside the others, writes its manifest with the digests of
 * its files, and moves it to its place. Files whose digests are given are durable already and not read again.
 * Throws `ModelFileError` where the model cannot be served; then nothing has moved.
 */
export function publishModel(
  folder: string,
  location: ModelLocation,
  digests: Readonly<Record<string, string>> = {},
): InstalledModel {
  const target = modelDirectory(location);
  const model = describeModel(location.kind, location.name, folder);
  writeManifest(folder, model, digests);
  mkdirSync(dirname(target), { recursive: true });
  renameSync(folder, target);
  syncPath(dirname(target));
  return { ...model, directory: target };
}

function endingOf(file: string): string {
  const ending = /\.(?:gguf|onnx)$/.exec(file)?.[0];
  if (ending === undefined)
    throw new ModelFileError(`${file} is not a folder, an archive (.zip, .tar, .tar.gz) or a .gguf or .onnx file`);
  return ending;
}

/** Archives often hold one folder with everything in it. */
function innermostFolder(folder: string): string {
  const [name, ...others] = readdirSync(folder);
  const below = join(folder, name ?? '');
  return name !== undefined && others.length === 0 && name !== 'onnx' && statSync(below).isDirectory()
    ? innermostFolder(below)
    : folder;
}

function copyFiles(from: string, to: string): void {
  for (const path of filesBelow(from)) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    copyFileSync(join(from, path), join(to, path));
  }
}

function writeManifest(folder: string, { manifest }: InstalledModel, known: Readonly<Record<string, string>>): void {
  const path = join(folder, manifestFile);
  const files = filesBelow(folder).filter((each) => each !== manifestFile);
  const digests = Object.fromEntries(files.map((each) => [each, known[each] ?? durableDigest(join(folder, each))]));
  writeFileSync(path, `${JSON.stringify({ ...manifest, digests }, null, 2)}\n`);
  syncPath(path);
}

function durableDigest(path: string): string {
  syncPath(path);
  return fileDigest(path);
}
