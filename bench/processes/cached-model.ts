import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../workloads/document-file.ts';

const main = join(import.meta.dir, '..', '..', 'src', 'main.ts');

/** Where models of the benches and of `bun run test:models` lie. */
export const modelsDirectory = join(cacheDirectory, 'models');

/** Pulls a model of the catalogue, as a user does, unless it is there. */
export async function pullModel(kind: string, name: string): Promise<void> {
  if (existsSync(join(modelsDirectory, kind, name))) return;
  const command = [process.execPath, main, 'models', 'pull', name, '--models-dir', modelsDirectory];
  const child = Bun.spawn(command, { stdio: ['ignore', 2, 2] });
  if ((await child.exited) !== 0) throw new Error(`${name} could not be pulled`);
}

/** Path of the weights of a generator of the catalogue, pulled unless they are there. */
export async function pulledGenerator(name: string): Promise<string> {
  await pullModel('generators', name);
  const directory = join(modelsDirectory, 'generators', name);
  const file = readdirSync(directory).find((each) => each.endsWith('.gguf'));
  if (file === undefined) throw new Error(`the model ${name} has no .gguf file`);
  return join(directory, file);
}
