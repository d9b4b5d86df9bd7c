import type { RightRow } from './joined-row.ts';

/**
 * The table in which a join finds rows, under its filters and the row filters
 * of its caller. Rows come in the order of their keys.
 */
export interface RightSide extends Disposable {
  /** Rows before filters, as far as that is known. */
  readonly rows: number | undefined;
  /** Every row, where they are at most `max` and that is quickly known; else undefined. */
  few(max: number): Promise<RightRow[] | undefined>;
  /** Every row. Fails with `limit_exceeded` where they are too many to be held. */
  all(): Promise<RightRow[]>;
  /** The rows of these keys; undefined where rows cannot be found so. */
  byKeys(keys: readonly string[]): Promise<RightRow[]> | undefined;
  /**
   * Every row that has one of these values in the field, and maybe others; undefined where an index does not find all of
   * them.
   */
  byValues(field: string, values: readonly (string | number | boolean)[]): Promise<RightRow[]> | undefined;
  /** Everything that was committed when the join began has been looked at. */
  readonly isCurrent: boolean;
}
