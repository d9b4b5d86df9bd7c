import { expect } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const root = Bun.fileURLToPath(new URL('../../../', import.meta.url));

/** Where the tests keep the real models that they have fetched. */
export const realModelsDirectory = join(root, 'bench/.cache/models');
export const realGenerator = 'smollm2-135m-instruct';
export const realEmbedder = 'all-minilm-l6-v2';

/** How long fetching them may take. */
export const fetchMs = 600_000;

/** Fetches the small generator and the small embedder as a user does, unless they are there. */
export async function pullRealModels(): Promise<void> {
  await pull('generators', realGenerator);
  await pull('embedders', realEmbedder);
}

/** `SUNDEW__INFERENCE__HUB_URL=none` takes the packages at once where no hub can be reached. */
async function pull(kind: string, name: string): Promise<void> {
  if (existsSync(join(realModelsDirectory, kind, name))) return;
  const verb = [join(root, 'src/main.ts'), 'models', 'pull', name, '--models-dir', realModelsDirectory];
  const child = Bun.spawn([process.execPath, ...verb], { stdio: ['ignore', 'inherit', 'inherit'] });
  expect(await child.exited).toBe(0);
}
