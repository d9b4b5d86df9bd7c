import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describeModel, type InstalledModel } from '../../src/models/installed-model.ts';
import type { ModelKind } from '../../src/protocol/models/model-kinds.ts';
import { cacheDirectory } from '../workloads/document-file.ts';

const program = Bun.fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** Where models of the catalogue lie that a case has needed. */
export const modelsDirectory = join(cacheDirectory, 'models');

/** A model of the catalogue, pulled as a user does it when a case first needs it. */
export async function pulledModel(kind: ModelKind, name: string): Promise<InstalledModel> {
  const folder = join(modelsDirectory, kind, name);
  if (!existsSync(folder)) {
    const command = [process.execPath, program, 'models', 'pull', name, '--models-dir', modelsDirectory];
    const pull = Bun.spawn(command, { stdio: ['ignore', 2, 2] });
    if ((await pull.exited) !== 0) throw new Error(`${name} could not be pulled`);
  }
  return describeModel(kind, name, folder);
}
