import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts';
import type { TableStatus } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { TableView } from '../../tables/table-view.ts';

/** Tables that are rendered before the loop yields to other requests. */
const sliceTables = 256;

export async function renderTable(table: TableView): Promise<TableStatus> {
  const totals = await table.totals();
  const { settings } = table;
  return {
    name: table.name,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    indexes: Object.fromEntries(table.listedIndexes.map((index) => [index.name, index.config])),
    shards: Object.fromEntries(
      table.ranges.map((range) => [
        String(range.rangeId),
        { byte_range: [base64(range.startKey), base64(range.endKey ?? '')] },
      ]),
    ),
    schema: settings.schema,
    ...(settings.readSchema === undefined
      ? {}
      : { migration: { state: 'rebuilding' as const, read_schema: settings.readSchema } }),
    ...(settings.ttlRewrite === undefined ? {} : { ttl_rewrite: { state: 'running' as const } }),
    storage_status: {
      disk_usage: totals.diskBytes,
      empty: totals.documents === 0 && totals.unreadableRanges.length === 0,
      ...(totals.unreadableRanges.length === 0 ? {} : { unreadable_ranges: totals.unreadableRanges }),
    },
  };
}

/** Of the key's UTF-8 bytes, as clients decode it; a bound that is not there stays empty. */
function base64(key: string): string {
  return Buffer.from(key).toString('base64');
}

/** As many tables as there are; those that are dropped meanwhile are left out. */
export async function renderTables(tables: readonly TableView[]): Promise<TableStatus[]> {
  const rendered: TableStatus[] = [];
  for (const [at, table] of tables.entries()) {
    if (at % sliceTables === sliceTables - 1) await yieldToEventLoop();
    try {
      rendered.push(await renderTable(table));
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'table_not_found')) throw error;
    }
  }
  return rendered;
}
