import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isModelName, type ModelKind } from '../../protocol/inference/model-kinds.ts';
import { describeModel, type InstalledModel } from './describe-model.ts';
import { digestFaults, fileDigest, filesBelow } from './file-digests.ts';
import { ModelFileError } from './model-file-error.ts';
import { manifestFile, readManifest } from './model-folder.ts';

/** Where a model is to be, and under which name. */
export interface ModelPlace {
  readonly modelsDirectory: string;
  readonly kind: ModelKind;
  readonly name: string;
}

export function modelDirectory({ modelsDirectory, kind, name }: ModelPlace): string {
  return join(modelsDirectory, kind, name);
}

/**
 * Copies a folder, or one .gguf or .onnx file, among the models. The copy is checked while no server looks at it and
 * appears whole, with the digests of its files in its manifest, or not at all. Throws `ModelFileError`.
 */
export function importModel(source: string, place: ModelPlace): InstalledModel {
  const target = modelDirectory(place);
  if (!isModelName(place.name)) throw new ModelFileError(`"${place.name}" is no name: letters, digits, . _ and -`);
  if (existsSync(target)) throw new ModelFileError(`${target} exists already; remove it first, or give another --name`);
  const stat = statSync(source, { throwIfNoEntry: false });
  if (stat === undefined) throw new ModelFileError(`${source} does not exist`);
  const incoming = join(place.modelsDirectory, place.kind, `.incoming-${crypto.randomUUID()}`);
  try {
    mkdirSync(incoming, { recursive: true });
    if (stat.isDirectory()) copyFiles(source, incoming);
    else copyDurably(source, join(incoming, `model${endingOf(source)}`));
    const faults = digestFaults(incoming, readManifest(incoming).digests ?? {});
    if (faults.length > 0) throw new ModelFileError(`the files differ from their manifest: ${faults.join('; ')}`);
    const model = describeModel(place.kind, place.name, incoming);
    writeManifest(incoming, model);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(incoming, target);
    syncPath(dirname(target));
    return { ...model, directory: target };
  } finally {
    rmSync(incoming, { recursive: true, force: true });
  }
}

/** Takes the model out of sight at once, then deletes its files. */
export function removeModel(place: ModelPlace): void {
  const target = modelDirectory(place);
  if (!isModelName(place.name) || !existsSync(target)) throw new ModelFileError(`${target} does not exist`);
  const outgoing = join(place.modelsDirectory, place.kind, `.removed-${crypto.randomUUID()}`);
  renameSync(target, outgoing);
  const owner = dirname(target);
  if (place.name.includes('/') && readdirSync(owner).length === 0) rmdirSync(owner);
  rmSync(outgoing, { recursive: true, force: true });
}

function endingOf(file: string): string {
  const ending = /\.(?:gguf|onnx)$/.exec(file)?.[0];
  if (ending === undefined) throw new ModelFileError(`${file} is no folder and no .gguf or .onnx file`);
  return ending;
}

function copyFiles(from: string, to: string): void {
  for (const path of filesBelow(from)) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    copyDurably(join(from, path), join(to, path));
  }
}

function copyDurably(from: string, to: string): void {
  copyFileSync(from, to);
  syncPath(to);
}

function writeManifest(folder: string, { manifest }: InstalledModel): void {
  const path = join(folder, manifestFile);
  const files = filesBelow(folder).filter((each) => each !== manifestFile);
  const digests = Object.fromEntries(files.map((each) => [each, fileDigest(join(folder, each))]));
  writeFileSync(path, `${JSON.stringify({ ...manifest, digests }, null, 2)}\n`);
  syncPath(path);
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
