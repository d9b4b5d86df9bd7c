import { type TableSchema, tableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { relationalColumns } from '../relational/relational-schema.ts';
import { refuseMisspelledMembers } from '../writes/unknown-members.ts';

const members = [...Object.keys(tableSchema.properties), 'storage_mode'];

/**
 * Refuses a schema that would do other than its sender thinks: what replaces a schema, and has nothing but members that
 * no schema has, would take the old one away and put nothing in its place.
 */
export function checkSchemaMembers(schema: TableSchema): void {
  const names = Object.keys(schema);
  if (names.length > 0 && !names.some((name) => members.includes(name))) {
    const message =
      `A schema has no member ${JSON.stringify(names[0]?.slice(0, 64))}: give the schema itself, ` +
      `with ${members.slice(0, 4).join(', ')} and the like, or {} for one that takes documents of any shape`;
    throw new ServiceError('invalid_request', message);
  }
  refuseMisspelledMembers(schema, members, 'A schema');
  relationalColumns(schema);
  if (schema.ttl) refuseMisspelledMembers(schema.ttl, Object.keys(tableSchema.properties.ttl.properties), '"ttl"');
}
