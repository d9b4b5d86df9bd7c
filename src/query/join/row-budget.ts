import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RightRow } from './joined-row.ts';

/** Bounds what of the right side is held. */
export class RowBudget {
  #rows = 0;
  #chars = 0;

  add(row: RightRow, rows: RightRow[]): void {
    this.#rows += 1;
    this.#chars += row.text.length;
    if (this.#rows > limits.joinRightRowsMax || this.#chars > limits.joinRightCharsMax) {
      const what = `${limits.joinRightRowsMax} rows, ${limits.joinRightCharsMax} characters`;
      const message = `join: the right side is too large to be held (${what}); narrow it with "right_filters"`;
      throw new ServiceError('limit_exceeded', message);
    }
    rows.push({ key: row.key, text: row.text, writtenMs: row.writtenMs });
  }
}
