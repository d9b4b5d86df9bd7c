import { ServiceError } from '../../protocol/service-error.ts';
import { descriptorLimit } from '../../runtime/descriptors.ts';
import type { Table, TableLease } from '../table.ts';

/** Descriptors that a range takes at least while it is written. */
const leastDescriptors = 3;
/** The codes of an opening that lacks descriptors; SQLite says no more than that it cannot. */
const causes: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'SQLITE_CANTOPEN']);

/**
 * Leases of all tables of one write, which is one in all of their ranges and so needs them open together. Fails with
 * `limit_exceeded` where it would fail for want of descriptors however often it is sent.
 */
export async function leaseTables(tables: readonly Table[], held: DisposableStack): Promise<TableLease[]> {
  const leases: TableLease[] = [];
  try {
    for (const table of tables) leases.push(held.use(await table.lease()));
    return leases;
  } catch (error) {
    const ranges = tables.reduce((sum, table) => sum + table.ranges.length, 0);
    throw isTooMany(ranges, error) ? tooManyRanges(ranges, error) : error;
  }
}

function isTooMany(ranges: number, error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.code !== 'unavailable') return false;
  const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY;
  return ranges * leastDescriptors > limit && causes.has(String((error.cause as { code?: unknown } | undefined)?.code));
}

function tooManyRanges(ranges: number, cause: unknown): ServiceError {
  const needs = `the tables of this write have ${ranges} key ranges, which have to be open together`;
  const remedy = 'write to fewer tables at a time, or have the server started with a higher "ulimit -n"';
  const message = `${needs}, and the server has ${descriptorLimit()} file descriptors, which is too few; ${remedy}`;
  return new ServiceError('limit_exceeded', message, { cause });
}
