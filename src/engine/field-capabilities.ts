import type { FieldCapabilities, TableSchema } from '../protocol/database/tables.ts';
import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

const known = new WeakMap<TableSchema, FieldCapabilities>();

/** The capabilities of the fields that a schema declares, by their paths. Found once for each schema. */
export function fieldCapabilities(schema: TableSchema): FieldCapabilities {
  const found =
    known.get(schema) ?? JSON.parse(callNative(() => nativeAddon().fieldCapabilities(JSON.stringify(schema))));
  known.set(schema, found);
  return found;
}
