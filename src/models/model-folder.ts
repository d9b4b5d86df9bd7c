import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { Errors } from '@sinclair/typebox/errors';
import { didYouMean } from '../lib/text/did-you-mean.ts';
import { type ModelManifest, modelManifestSchema } from '../protocol/models/model-manifest.ts';
import { ModelFileError } from './model-file-error.ts';

const jsonBytesMax = 4 * 1024 * 1024;
export const manifestFile = 'manifest.json';

/** Names of weights that were quantised to eight bits, without their ending. */
const quantized = /(?:[-_.](?:i8|int8|quantized|q8_0))$/i;

export function isQuantizedName(stem: string): boolean {
  return quantized.test(stem);
}

/** A JSON object of the folder; `undefined` where there is no such file. */
export function readFolderJson(folder: string, name: string): Record<string, unknown> | undefined {
  const path = join(folder, name);
  if (!existsSync(path)) return undefined;
  const { size } = statSync(path);
  if (size > jsonBytesMax) throw new ModelFileError(`${name} has ${size} bytes; at most ${jsonBytesMax} are read`);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new ModelFileError(`${name} is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ModelFileError(`${name} does not hold a JSON object`);
  }
  return value as Record<string, unknown>;
}

const members = Object.keys(modelManifestSchema.properties);

/**
 * The manifest as it is written; empty where there is none. Members that mean nothing here are left out, those of other
 * programs for one. Throws `ModelFileError`, also for a member that looks misspelt.
 */
export function readManifest(folder: string): ModelManifest {
  const given = Object.entries(readFolderJson(folder, manifestFile) ?? {});
  const value = Object.fromEntries(given.filter(([name]) => members.includes(name)));
  for (const [name] of given) {
    const guess = Object.hasOwn(value, name) ? undefined : didYouMean(name, members);
    if (guess === undefined) continue;
    throw new ModelFileError(`${manifestFile} has the unknown member "${name}"; did you mean "${guess}"?`);
  }
  const wrong = Errors(modelManifestSchema, [], value).First();
  if (wrong !== undefined) {
    const member = wrong.path.slice(1).replaceAll('/', '.');
    throw new ModelFileError(`${manifestFile} has a wrong member "${member}": ${wrong.message.toLowerCase()}`);
  }
  const manifest = value as ModelManifest;
  for (const path of Object.values(manifest.variants ?? {})) checkPathInside(folder, path);
  return manifest;
}

function checkPathInside(folder: string, path: string): void {
  if (isAbsolute(path) || path.includes('\\') || path.split('/').some((each) => /^\.{0,2}$/.test(each))) {
    throw new ModelFileError(`${manifestFile} names "${path}", which is not a path below the directory`);
  }
  if (!existsSync(join(folder, path))) throw new ModelFileError(`${manifestFile} names "${path}", which is not there`);
}

/** Every file with weights: in the folder itself and in `onnx/`. */
export function weightFiles(folder: string): string[] {
  return ['', 'onnx/'].flatMap((below) => {
    const path = join(folder, below);
    if (!existsSync(path)) return [];
    return readdirSync(path)
      .filter((name) => /\.(?:gguf|onnx)$/.test(name) && !name.startsWith('.'))
      .map((name) => below + name)
      .sort();
  });
}

/** Types of GGUF files, such as `q4_k_m`. */
const ggufType = /[-_.]((?:i?q\d|tq\d|mxfp4|bf16)[a-z0-9_]*)$/i;

function variantOf(stem: string): string {
  if (isQuantizedName(stem)) return 'i8';
  if (/[-_.](?:f16|fp16)$/i.test(stem)) return 'f16';
  return ggufType.exec(stem)?.[1]?.toLowerCase() ?? 'full';
}

/**
 * Weights by variant: `i8`, `f16`, a type of GGUF files such as `q4_k_m`, else `full`, as
 * their names say. Throws where two files have the same right.
 */
export function variantsOf(files: readonly string[]): Record<string, string> {
  const variants: Record<string, string> = {};
  for (const file of files) {
    const stem = file.replace(/\.(?:gguf|onnx)$/, '');
    const variant = variantOf(stem);
    const other = variants[variant];
    if (other !== undefined) {
      throw new ModelFileError(
        `${other} and ${file} could both be the model; name one under "variants" in ${manifestFile}`,
      );
    }
    variants[variant] = file;
  }
  return variants;
}
