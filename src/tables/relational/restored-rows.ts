import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Table } from '../table.ts';
import { tablesNaming } from './constrained-tables.ts';
import { isRelational, relationalColumns } from './relational-schema.ts';
import { rowPages } from './row-pages.ts';

/** The tables that a restore is about to publish, and those that will be beside them. */
interface Restored {
  readonly staged: Table;
  /** That it is to have. */
  readonly name: string;
  /** Tables that stay as they are. The same backup has the others, whose rows fit as they did at its instant. */
  readonly staying: readonly Table[];
  readonly isRestored: (name: string) => boolean;
}

/** A column whose values are keys of rows of another table. */
interface Naming {
  readonly column: string;
  readonly table: Table;
  /** As messages have it: a staged table is named otherwise. */
  readonly name: string;
  readonly target: Table;
  readonly targetName: string;
}

/**
 * Fails with `constraint_violation` where a row of the restored table names one that a table beside it does not have, or a row
 * beside it one that the restored table does not have. The caller keeps writes of rows out meanwhile.
 */
export async function checkRestoredRows(restored: Restored, signal: AbortSignal): Promise<void> {
  for (const naming of referencesOf(restored)) await checkColumn(naming, signal);
}

/** Whether there is anything to check; fails as the check where that is known without looking at rows. */
export function hasReferences(restored: Restored): boolean {
  return referencesOf(restored).length > 0;
}

function referencesOf(restored: Restored): Naming[] {
  return [...namingOthers(restored), ...namedByOthers(restored)];
}

function namingOthers({ staged, name, staying, isRestored }: Restored): Naming[] {
  return relationalColumns(staged.settings.schema).flatMap(({ name: column, references }) => {
    if (!references || references.table === name || isRestored(references.table)) return [];
    const target = staying.find((table) => table.name === references.table);
    if (target && isRelational(target.settings.schema)) {
      return { column, table: staged, name, target, targetName: target.name };
    }
    const what = `"${column}" of "${name}" names rows of "${references.table}", which is not a relational table here`;
    throw refused(name, `${what}: restore it as well, or before`);
  });
}

function namedByOthers({ staged, name, staying, isRestored }: Restored): Naming[] {
  const others = tablesNaming(name, staying).filter((table) => !isRestored(table.name));
  const [first] = others;
  if (first && !isRelational(staged.settings.schema)) {
    const what = `rows of "${first.name}" name rows of "${name}", which is not relational in the backup`;
    throw refused(name, `${what}: restore that table as well, or drop it before`);
  }
  return others.flatMap((table) =>
    relationalColumns(table.settings.schema)
      .filter(({ references }) => references?.table === name)
      .map(({ name: column }) => ({ column, table, name: table.name, target: staged, targetName: name })),
  );
}

async function checkColumn({ column, table, name, target, targetName }: Naming, signal: AbortSignal): Promise<void> {
  using leases = new DisposableStack();
  const targets: Awaited<ReturnType<Table['leaseForUpkeep']>>[] = [];
  for (const { rangeId } of target.ranges) targets.push(leases.use(await target.leaseForUpkeep(rangeId)));
  const isThere = (key: string) => targets[target.rangeOf(key)]?.range.stored.documents.get(key) !== undefined;
  for (const { rangeId } of table.ranges) {
    using lease = await table.leaseForUpkeep(rangeId);
    for (const rows of rowPages(lease.range.stored.documents)) {
      for (const { key, body } of rows) {
        const value = (JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>)[column];
        if (value === undefined || value === null || isThere(String(value))) continue;
        const row = JSON.stringify(key.slice(0, 64));
        const what = `"${column}" of the row ${row} of "${name}" names a row that "${targetName}" does not have`;
        throw refused(name, `${what}: restore both tables from one backup`);
      }
      await yieldToEventLoop();
      signal.throwIfAborted();
    }
  }
}

function refused(table: string, what: string): ServiceError {
  return new ServiceError('constraint_violation', `the restore is refused: ${what}`, { details: { table } });
}
