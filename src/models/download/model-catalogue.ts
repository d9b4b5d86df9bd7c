import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Errors } from '@sinclair/typebox/errors';
import { assert } from '../../lib/assert.ts';
import { type CatalogueEntry, catalogueEntrySchema } from '../../protocol/models/catalogue-entry.ts';
import { isModelName } from '../../protocol/models/model-kinds.ts';
import type { PullEntry } from './pull-model.ts';
import { isInnerPath, parseSource } from './source-address.ts';

const ownDirectory = Bun.fileURLToPath(new URL('../../../models/', import.meta.url));

/** The models that can be fetched by name, in the order of their names. They come with the product. */
export function modelCatalogue(directory = ownDirectory): CatalogueEntry[] {
  const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
  return files.sort().map((file) => {
    const entry: unknown = JSON.parse(readFileSync(join(directory, file), 'utf8'));
    return checkEntry(entry, file);
  });
}

/** The model to pull. */
export function pullEntryOf({ name, kind, license, description, manifest, files }: CatalogueEntry): PullEntry {
  return {
    name,
    kind,
    manifest: { ...manifest, license, description },
    files: files.map(({ path, sources }) => ({
      path,
      sources: sources.map(({ from, bytes, sha256 }) => ({ from, bytes, digest: { sha256 } })),
    })),
  };
}

/** Throws where the entry is not one; that is a fault of the product. */
export function checkEntry(entry: unknown, file: string): CatalogueEntry {
  const wrong = Errors(catalogueEntrySchema, [], entry).First();
  assert(wrong === undefined, `${file}: ${wrong?.path} ${wrong?.message}`);
  const checked = entry as CatalogueEntry;
  assert(isModelName(checked.name) && `${checked.name}.json` === file, `${file}: the name is not that of the file`);
  for (const { path, sources } of checked.files) {
    assert(isInnerPath(path), `${file}: "${path}" leaves the directory`);
    for (const { from } of sources) parseSource(from);
  }
  return checked;
}
