import { compareKeys } from '../../lib/key-order.ts';
import type { RightRow } from './joined-row.ts';
import { RowBudget } from './row-budget.ts';

/**
 * The rows that `find` has for each slice of the values, each row once and in the order of their keys. Fails with
 * `limit_exceeded` where they are more than may be held.
 */
export async function inSlices<Value>(
  values: readonly Value[],
  valuesMax: number,
  find: (slice: readonly Value[]) => Promise<readonly RightRow[]>,
): Promise<RightRow[]> {
  const budget = new RowBudget();
  const keys = new Set<string>();
  const rows: RightRow[] = [];
  for (let start = 0; start < values.length; start += valuesMax) {
    for (const row of await find(values.slice(start, start + valuesMax))) {
      if (keys.has(row.key)) continue;
      keys.add(row.key);
      budget.add(row, rows);
    }
  }
  return rows.sort((left, right) => compareKeys(left.key, right.key));
}
