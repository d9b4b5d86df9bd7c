import { type Caller, rowFiltersOf } from '../../access/principal.ts';
import { fieldCapabilities } from '../../engine/field-capabilities.ts';
import { shownIndexConfig } from '../../index-kinds/configuration/managed-source.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { TableStatus } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { TableTotals, TableView } from '../../tables/table-view.ts';

/** Tables that are rendered before the loop yields to other requests. */
const sliceTables = 256;

/** Totals are those of all documents: who sees only some of them is not told. */
export async function renderTable(table: TableView, caller: Caller): Promise<TableStatus> {
  return described(table, rowFiltersOf(caller, table.name).length === 0 ? await table.totals() : undefined);
}

function described(table: TableView, totals: TableTotals | undefined): TableStatus {
  const { settings } = table;
  return {
    name: table.name,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    indexes: Object.fromEntries(table.listedIndexes.map((index) => [index.name, shownIndexConfig(index.config)])),
    shards: Object.fromEntries(
      table.ranges.map((range) => [
        String(range.rangeId),
        { byte_range: [base64(range.startKey), base64(range.endKey ?? '')] },
      ]),
    ),
    schema: settings.schema,
    field_capabilities: fieldCapabilities(settings.readSchema ?? settings.schema),
    ...(settings.readSchema === undefined
      ? {}
      : { migration: { state: 'rebuilding' as const, read_schema: settings.readSchema } }),
    ...(settings.ttlRewrite === undefined ? {} : { ttl_rewrite: { state: 'running' as const } }),
    ...(totals && { storage_status: storageStatus(totals) }),
  };
}

function storageStatus({
  documents,
  diskBytes,
  unreadableRanges,
}: TableTotals): NonNullable<TableStatus['storage_status']> {
  return {
    disk_usage: diskBytes,
    empty: documents === 0 && unreadableRanges.length === 0,
    ...(unreadableRanges.length === 0 ? {} : { unreadable_ranges: unreadableRanges }),
  };
}

/** Of the key's UTF-8 bytes, as clients decode it; a bound that is not there stays empty. */
function base64(key: string): string {
  return Buffer.from(key).toString('base64');
}

/** As many tables as there are, but for those that are dropped meanwhile; one that a restore replaces has no totals. */
export async function renderTables(tables: readonly TableView[], caller: Caller): Promise<TableStatus[]> {
  const rendered: TableStatus[] = [];
  for (const [at, table] of tables.entries()) {
    if (at % sliceTables === sliceTables - 1) await yieldToEventLoop();
    try {
      rendered.push(await renderTable(table, caller));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'unavailable') rendered.push(described(table, undefined));
      else if (error.code !== 'table_not_found') throw error;
    }
  }
  return rendered;
}
