import type { TableSchema } from '../../protocol/database/tables.ts';
import type { SchemaCondition } from '../../tables/schema/schema-change.ts';

/** Tag of a schema as it is stored: equal tags, equal schemas. */
export function schemaTag(schema: TableSchema): string {
  return `"${Bun.hash(JSON.stringify(schema)).toString(16)}"`;
}

/** The schema that the header `If-Match` names: one of its tags, or `*` for any schema. */
export function ifMatch(header: string | null): SchemaCondition {
  if (header === null || header.trim() === '*') return () => true;
  const tags = header.split(',').map((tag) => tag.trim());
  return (current) => tags.includes(schemaTag(current));
}
