import { ServiceError } from '../../protocol/service-error.ts';
import { relationalColumns } from '../../tables/relational/relational-schema.ts';
import type { TableSettings } from '../../tables/table-view.ts';
import type { BackupChain } from '../backup-chain.ts';

/** Manifests that are read from the location at a time. */
const manifestsAtOnce = 16;

/** A table of a backup on its way; those of one group name each other's rows, directly or by way of others. */
interface OrderedTable {
  name: string;
  group: number;
}

/**
 * The tables of a backup by names, those whose rows others name before those others, else in their order. Where tables name
 * each other in a circle, one of them comes before what it names.
 */
export async function restoreOrder(names: readonly string[], chain: BackupChain): Promise<OrderedTable[]> {
  if (names.length < 2) return names.map((name) => ({ name, group: 0 }));
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
  const groups = groupsOf(ordered, named);
  return ordered.map((name) => ({ name, group: groups.get(name) ?? 0 }));
}

/** The number of each table's group. */
function groupsOf(names: readonly string[], named: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const groups = new Map(names.map((name, at) => [name, at]));
  for (const name of names) {
    for (const other of named.get(name) ?? []) {
      const [joined, left] = [groups.get(name), groups.get(other)];
      if (joined === undefined || left === undefined || joined === left) continue;
      for (const [each, group] of groups) if (group === left) groups.set(each, joined);
    }
  }
  return groups;
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
