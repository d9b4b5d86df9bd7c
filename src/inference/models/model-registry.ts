import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isModelName, type ModelKind, modelKinds } from '../../protocol/inference/model-kinds.ts';
import { describeModel, type InstalledModel } from './describe-model.ts';
import { describePredictor, type InstalledPredictor } from './describe-predictor.ts';
import { ModelFileError } from './model-file-error.ts';
import { manifestFile, weightFiles } from './model-folder.ts';

/** A directory that looks like a model and is none that can be served. */
export interface RefusedModel {
  readonly kind: ModelKind | 'predictors';
  readonly name: string;
  readonly reason: string;
}

/** The chunker that is built in; no directory may take its name. */
export const fixedChunker = 'fixed';
const quantizedSuffix = '-i8';

interface Candidate {
  readonly name: string;
  readonly directory: string;
}

/** What is installed, as it was found at the start; models that come later are found by the next start. */
export class ModelRegistry {
  readonly models: readonly InstalledModel[];
  readonly predictors: readonly InstalledPredictor[];
  readonly refused: readonly RefusedModel[];

  /** Directories that do not exist hold nothing. Never throws for what a directory holds. */
  constructor(modelsDirectory: string, predictorsDirectory: string) {
    const refused: RefusedModel[] = [];
    this.models = modelKinds.flatMap((kind) =>
      described(join(modelsDirectory, kind), kind, refused, ({ name, directory }) => {
        if (kind === 'chunkers' && name === fixedChunker)
          throw new ModelFileError('the name is that of the built-in one');
        return describeModel(kind, name, directory);
      }),
    );
    this.predictors = described(predictorsDirectory, 'predictors', refused, ({ name, directory }) =>
      describePredictor(name, directory),
    );
    this.refused = refused;
  }

  /** The model of that name; where `NAME-i8` lies beside `NAME`, it is preferred. */
  find(kind: ModelKind, name: string): InstalledModel | undefined {
    const named = (wanted: string) => this.models.find((model) => model.kind === kind && model.name === wanted);
    return named(`${name}${quantizedSuffix}`) ?? named(name);
  }

  /** Installed under exactly this name, in any kind. */
  findById(name: string): InstalledModel | undefined {
    return this.models.find((model) => model.name === name);
  }
}

function described<T>(
  parent: string,
  kind: RefusedModel['kind'],
  refused: RefusedModel[],
  describe: (candidate: Candidate) => T,
): T[] {
  return candidates(parent).flatMap((candidate) => {
    try {
      if (!isModelName(candidate.name)) throw new ModelFileError('the name has other than letters, digits, . _ and -');
      return [describe(candidate)];
    } catch (error) {
      const reason = reasonOf(error);
      if (reason === undefined) throw error;
      refused.push({ kind, name: candidate.name, reason });
      return [];
    }
  });
}

/** A model that cannot be used, and a file that cannot be read, concern that model alone. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof ModelFileError) return error.message;
  return error instanceof Error && 'code' in error && 'syscall' in error ? error.message : undefined;
}

/** Every directory of a model, in order: `NAME/`, or `OWNER/NAME/` where the first holds no model itself. */
function candidates(parent: string): Candidate[] {
  return folders(parent).flatMap((name) => {
    const directory = join(parent, name);
    if (isModelFolder(directory)) return [{ name, directory }];
    const below = folders(directory).map((each) => ({ name: `${name}/${each}`, directory: join(directory, each) }));
    return below.some((each) => isModelFolder(each.directory)) ? below : [{ name, directory }];
  });
}

function isModelFolder(directory: string): boolean {
  return existsSync(join(directory, manifestFile)) || weightFiles(directory).length > 0;
}

/** Names that begin with a dot are not looked at: what is being installed lies there. */
function folders(parent: string): string[] {
  if (!existsSync(parent)) return [];
  return readdirSync(parent)
    .filter(
      (name) =>
        !name.startsWith('.') && (statSync(join(parent, name), { throwIfNoEntry: false })?.isDirectory() ?? false),
    )
    .sort();
}
