import { type Caller, rowFiltersOf, seesTable } from '../../access/principal.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * The error as its caller may be told of it. One that says what rows stand against a deletion names a table of theirs, and the
 * key of a row that a cascade has reached: the caller may see neither. Others are of rows that the caller has written.
 */
export function shownViolation(thrown: unknown, caller: Caller): unknown {
  if (!(thrown instanceof ServiceError) || thrown.code !== 'constraint_violation') return thrown;
  const { table, naming } = thrown.details ?? {};
  if (naming === undefined) return thrown;
  const isSeen = (name: unknown) =>
    typeof name !== 'string' || (seesTable(caller, name) && rowFiltersOf(caller, name).length === 0);
  if (isSeen(table) && isSeen(naming)) return thrown;
  const message = 'rows that you may not see name what this would delete; ask an administrator';
  return new ServiceError('constraint_violation', message, { details: { ...thrown.details } });
}
