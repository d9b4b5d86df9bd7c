import type { RowFilters } from './principal.ts';

/** The value of `{"$auth": NAME}` in a row filter. */
interface AuthValues {
  readonly username: string;
  readonly roles: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A filter whose values are not all known permits nothing. */
const permitsNothing = { match_none: {} } as const;
const pathPartsMax = 16;

/**
 * The filters of several subjects together: all that stand under the same name must match. `{"$auth": "username"}`,
 * `"roles"` and `"metadata.a.b"` are replaced by the caller's values; a filter with one that the caller lacks permits
 * nothing. Undefined where nothing is filtered.
 */
export function rowFiltersFor(
  all: readonly Readonly<Record<string, object>>[],
  values: AuthValues,
): RowFilters | undefined {
  const byTable = new Map<string, object[]>();
  for (const filters of all) {
    for (const [table, filter] of Object.entries(filters)) {
      byTable.set(table, [...(byTable.get(table) ?? []), substitute(filter, values)]);
    }
  }
  if (byTable.size === 0) return undefined;
  return Object.fromEntries(byTable);
}

/** The values that a filter asks for, such as `metadata.team`. Fails with a sentence where one cannot be meant. */
export function authValuesIn(filter: unknown): string[] {
  if (typeof filter !== 'object' || filter === null) return [];
  if (Array.isArray(filter)) return filter.flatMap(authValuesIn);
  if (!Object.hasOwn(filter, '$auth')) return Object.values(filter).flatMap(authValuesIn);
  const { $auth: name } = filter as { $auth: unknown };
  if (Object.keys(filter).length !== 1 || typeof name !== 'string' || !isAuthName(name)) {
    throw new Error('"$auth" stands alone in its object and names "username", "roles" or "metadata.NAME"');
  }
  return [name];
}

function isAuthName(name: string): boolean {
  if (name === 'username' || name === 'roles') return true;
  const parts = name.split('.');
  return parts[0] === 'metadata' && parts.length > 1 && parts.length <= pathPartsMax && !parts.includes('');
}

class UnknownValue extends Error {}

function substitute(filter: object, values: AuthValues): object {
  try {
    return replaced(filter, values) as object;
  } catch (error) {
    if (error instanceof UnknownValue) return permitsNothing;
    throw error;
  }
}

function replaced(node: unknown, values: AuthValues): unknown {
  if (typeof node !== 'object' || node === null) return node;
  if (Array.isArray(node)) return node.map((item) => replaced(item, values));
  if (Object.hasOwn(node, '$auth')) return authValue(String((node as { $auth: unknown }).$auth), values);
  return Object.fromEntries(Object.entries(node).map(([name, member]) => [name, replaced(member, values)]));
}

function authValue(name: string, { username, roles, metadata }: AuthValues): unknown {
  if (name === 'username') return username;
  if (name === 'roles') return [...roles];
  let value: unknown = metadata;
  for (const part of name.split('.').slice(1)) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isObject || !Object.hasOwn(value as object, part)) throw new UnknownValue();
    value = (value as Record<string, unknown>)[part];
  }
  if (!isPlain(value) && !(Array.isArray(value) && value.every(isPlain))) throw new UnknownValue();
  return value;
}

/** A value that a document may hold at a path: anything else could be read as a part of a query. */
function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
