import { ServiceError } from '../../protocol/service-error.ts';
import { relationalColumns } from '../../tables/relational/relational-schema.ts';
import type { TableSettings } from '../../tables/table-view.ts';
import type { BackupChain } from '../backup-chain.ts';

/**
 * The names of tables of a backup, those whose rows others name before those others, else in their order. Where tables name
 * each other in a circle, one of them comes before what it names.
 */
export async function restoreOrder(names: readonly string[], chain: BackupChain): Promise<string[]> {
  if (names.length < 2) return [...names];
  const named = new Map<string, readonly string[]>();
  for (const name of names) named.set(name, await namedBy(name, chain));
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
    const backedUp = await chain.table(name);
    if (!backedUp) return [];
    const { schema } = JSON.parse(backedUp.manifest.settings) as TableSettings;
    return relationalColumns(schema).flatMap(({ references }) => references?.table ?? []);
  } catch (error) {
    // What is damaged fails by itself, with the table alone.
    if (error instanceof SyntaxError || error instanceof TypeError) return [];
    if (error instanceof ServiceError && !error.retryable) return [];
    throw error;
  }
}
