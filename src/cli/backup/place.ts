import type { VerbContext } from '../verb.ts';

/** The location, and the connection that is to allow it, as requests have them. */
export function place({ args }: VerbContext, location: string): { location: string; connection?: string } {
  const connection = args.flags.get('--connection');
  return connection === undefined ? { location } : { location, connection };
}

/** The tables that `--tables` names, as requests have them. */
export function tablesOf({ args }: VerbContext): { table_names?: string[] } {
  const tables = args.flags.get('--tables');
  return tables === undefined ? {} : { table_names: tables.split(',') };
}
