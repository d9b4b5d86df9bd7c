import type { TableStatus } from '../../protocol/database/tables.ts';
import type { TableView } from '../../tables/table-view.ts';

export async function renderTable(table: TableView): Promise<TableStatus> {
  const totals = await table.totals();
  const { settings } = table;
  return {
    name: table.name,
    ...(settings.description === undefined ? {} : { description: settings.description }),
    indexes: Object.fromEntries(table.indexes.map((index) => [index.name, index.config])),
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
    storage_status: { disk_usage: totals.diskBytes, empty: totals.documents === 0 },
  };
}

/** Of the key's UTF-8 bytes, as clients decode it; a bound that is not there stays empty. */
function base64(key: string): string {
  return Buffer.from(key).toString('base64');
}
