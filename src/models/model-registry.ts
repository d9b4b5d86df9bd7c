import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isModelName, type ModelKind, modelKinds } from '../protocol/models/model-kinds.ts';
import { createdAt, describeModel, type InstalledModel } from './installed-model.ts';
import { describePredictor, type InstalledPredictor } from './installed-predictor.ts';
import { ModelFileError } from './model-file-error.ts';
import { manifestFile, weightFiles } from './model-folder.ts';

/** A directory that looks like a model and is none that can be served. */
interface RefusedModel {
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

/** The model in one directory, and the state of its files when it was looked at. */
interface ScannedDirectory<T> {
  readonly signature: string;
  readonly described: T | RefusedModel;
}

/** The installed models, as the last scan found them. */
export class ModelRegistry {
  readonly #modelsDirectory: string;
  readonly #predictorsDirectory: string;
  #models = new Map<string, ScannedDirectory<InstalledModel>>();
  #predictors = new Map<string, ScannedDirectory<InstalledPredictor>>();

  /** Directories that do not exist hold nothing. Never throws for what a directory holds. */
  constructor(modelsDirectory: string, predictorsDirectory: string) {
    this.#modelsDirectory = modelsDirectory;
    this.#predictorsDirectory = predictorsDirectory;
    this.rescan();
  }

  get models(): readonly InstalledModel[] {
    return [...this.#models.values()].flatMap(({ described }) => ('reason' in described ? [] : [described]));
  }

  get predictors(): readonly InstalledPredictor[] {
    return [...this.#predictors.values()].flatMap(({ described }) => ('reason' in described ? [] : [described]));
  }

  get refused(): readonly RefusedModel[] {
    return [...this.#models.values(), ...this.#predictors.values()].flatMap(({ described }) =>
      'reason' in described ? [described] : [],
    );
  }

  /** Looks again; only directories whose files have changed are read. */
  rescan(): void {
    const models = modelKinds.flatMap((kind) =>
      scan(join(this.#modelsDirectory, kind), kind, this.#models, ({ name, directory }) => {
        if (kind === 'chunkers' && name === fixedChunker)
          throw new ModelFileError('the name is that of the built-in one');
        return describeModel(kind, name, directory);
      }),
    );
    this.#models = new Map(models);
    this.#predictors = new Map(
      scan(this.#predictorsDirectory, 'predictors', this.#predictors, ({ name, directory }) =>
        describePredictor(name, directory),
      ),
    );
  }

  /** The model of that name; where `NAME-i8` lies beside `NAME`, it is preferred. */
  find(kind: ModelKind, name: string): InstalledModel | undefined {
    const ofKind = this.models.filter((model) => model.kind === kind);
    return named(ofKind, `${name}${quantizedSuffix}`) ?? named(ofKind, name) ?? quantized(ofKind, name);
  }

  /** Installed under exactly this name, in any kind. */
  findById(name: string): InstalledModel | undefined {
    return named(this.models, name) ?? quantized(this.models, name);
  }
}

/** Whether its weights are still those that were described. */
export function isStillThere({ directory, weights, created }: InstalledModel): boolean {
  const stat = statSync(join(directory, weights), { throwIfNoEntry: false });
  return stat !== undefined && createdAt(stat) === created;
}

function named(models: readonly InstalledModel[], name: string): InstalledModel | undefined {
  return models.find((model) => model.name === name);
}

/** `NAME-i8` also means the model `NAME` whose own weights of eight bits are in use. */
function quantized(models: readonly InstalledModel[], name: string): InstalledModel | undefined {
  if (!name.endsWith(quantizedSuffix)) return undefined;
  const plain = name.slice(0, -quantizedSuffix.length);
  return models.find((model) => model.name === plain && model.variant === 'i8');
}

/** The name under which the weights of eight bits are listed beside full ones; undefined where there are not both. */
export function quantizedName({ name, manifest }: InstalledModel): string | undefined {
  const { i8, ...others } = manifest.variants;
  return i8 !== undefined && Object.keys(others).length > 0 ? `${name}${quantizedSuffix}` : undefined;
}

function scan<T>(
  parent: string,
  kind: RefusedModel['kind'],
  known: ReadonlyMap<string, ScannedDirectory<T>>,
  describe: (candidate: Candidate) => T,
): [string, ScannedDirectory<T>][] {
  return candidates(parent).map((candidate) => {
    const key = `${kind}/${candidate.name}`;
    const before = known.get(key);
    let signature = '';
    const described = describedOrRefused(kind, candidate, () => {
      signature = signatureOf(candidate.directory);
      return before?.signature === signature ? before.described : describe(candidate);
    });
    return [key, { signature, described }];
  });
}

function describedOrRefused<T>(
  kind: RefusedModel['kind'],
  candidate: Candidate,
  describe: () => T | RefusedModel,
): T | RefusedModel {
  try {
    if (!isModelName(candidate.name)) throw new ModelFileError('the name has other than letters, digits, . _ and -');
    return describe();
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    return { kind, name: candidate.name, reason };
  }
}

/** Names, sizes and times of all files below a directory. */
function signatureOf(directory: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  return names
    .map((name) => {
      const stat = statSync(join(directory, name), { throwIfNoEntry: false });
      return `${name} ${stat?.size} ${stat?.mtimeMs}`;
    })
    .join('\n');
}

/** A model that cannot be used, and a file that cannot be read, concern that model alone. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof ModelFileError) return error.message;
  return error instanceof Error && 'code' in error && 'syscall' in error
    ? `its files cannot be read (${error.code})`
    : undefined;
}

/** Every directory of a model, in order: `NAME/`, or `OWNER/NAME/` where the first holds no model itself. */
function candidates(parent: string): Candidate[] {
  return folders(parent).flatMap((name) => {
    const directory = join(parent, name);
    try {
      if (isModelFolder(directory)) return [{ name, directory }];
      const below = folders(directory).map((each) => ({ name: `${name}/${each}`, directory: join(directory, each) }));
      return below.some((each) => isModelFolder(each.directory)) ? below : [{ name, directory }];
    } catch (error) {
      if (reasonOf(error) === undefined) throw error;
      // A folder that cannot be looked into is described as a model, and refused for that.
      return [{ name, directory }];
    }
  });
}

function isModelFolder(directory: string): boolean {
  return existsSync(join(directory, manifestFile)) || weightFiles(directory).length > 0;
}

/** Names that begin with a dot are not looked at: what is being installed lies there. */
function folders(parent: string): string[] {
  if (!existsSync(parent)) return [];
  return readdirSync(parent)
    .filter((name) => !name.startsWith('.') && isFolder(join(parent, name)))
    .sort();
}

/** Links that lead nowhere are none. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
