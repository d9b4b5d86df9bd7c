import { existsSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isModelName } from '../protocol/models/model-kinds.ts';
import { ModelFileError } from './model-file-error.ts';
import { type ModelLocation, modelDirectory } from './model-location.ts';

/** Takes the model out of sight at once, then deletes its files. */
export function removeModel(location: ModelLocation): void {
  const target = modelDirectory(location);
  if (!isModelName(location.name) || !existsSync(target)) throw new ModelFileError(`${target} does not exist`);
  const outgoing = join(location.modelsDirectory, location.kind, `.removed-${crypto.randomUUID()}`);
  renameSync(target, outgoing);
  const owner = dirname(target);
  if (location.name.includes('/') && readdirSync(owner).length === 0) rmdirSync(owner);
  rmSync(outgoing, { recursive: true, force: true });
}
