import { ServiceError } from '../../protocol/service-error.ts';
import { relationalColumns } from '../../tables/relational/relational-schema.ts';
import type { TableSettings } from '../../tables/table-view.ts';
import type { BackupChain } from '../backup-chain.ts';

/** Manifests that are read from the location at a time. */
const manifestsAtOnce = 16;

/**
 * The names of tables of a backup, those whose rows others name before those others, else in their order. Where tables name
 * each other in a circle, one of them comes before what it names.
 */
export async function restoreOrder(names: readonly string[], chain: BackupChain): Promise<string[]> {
  if (names.length < 2) return [...names];
  const named = new Map<string, readonly string[]>();
  for (let start = 0; start < names.length; start += manifestsAtOnce) {
    const slice = names.slice(start, start + manifestsAtOnce);
    const found = await Promise.all(slice.map((name) => namedBy(name, chain)));
    for (const [at, name] of slice.entries()) named.set(name, found[at] ?? []);
  }
  const seen = new Set<string>();
  const ordered: string[] = [];
  const visit = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const other of named.get(name) ?? []) if (named.has(other)) visit(other);
    ordered.push(name);
  };
  for (const name of names) visit(name);
  return ordered;
}

async function namedBy(name: string, chain: BackupChain): Promise<readonly string[]> {
  try {
    const manifest = await chain.manifest(name);
    if (!manifest) return [];
    const { schema } = JSON.parse(manifest.settings) as TableSettings;
    return relationalColumns(schema).flatMap(({ references }) => references?.table ?? []);
  } catch (error) {
    // A damaged manifest fails by itself, with its table alone.
    if (error instanceof SyntaxError || error instanceof TypeError) return [];
    if (error instanceof ServiceError && !error.retryable) return [];
    throw error;
  }
}
