import type { RowKeys, RowPlace } from './joined-order.ts';
import type { JoinedRow } from './joined-row.ts';

/** A joined row that knows where it stands. */
interface PlacedRow {
  readonly row: JoinedRow;
  readonly place: RowPlace;
}

/** Where a page begins, or ends. */
interface PageEdge {
  readonly place: RowPlace;
  /** The page before the place is wanted, not the one after it. */
  readonly before: boolean;
}

/**
 * Rows beyond those that are wanted, before they are put in order and cut
 * off: cutting at each row would order them each time.
 */
const slackRows = 1_024;

/** The part of an order that a request wants, of rows that come in any order. Holds no more of them than it needs. */
export class OrderedPage {
  readonly #keys: RowKeys;
  readonly #wanted: number;
  readonly #edge: PageEdge | undefined;
  #kept: PlacedRow[] = [];

  /** `wanted`: the first rows behind the edge, or the last ones before it. */
  constructor(keys: RowKeys, wanted: number, edge: PageEdge | undefined) {
    this.#keys = keys;
    this.#wanted = wanted;
    this.#edge = edge;
  }

  add(row: JoinedRow): void {
    if (this.#wanted === 0) return;
    const place = this.#keys.placeOf(row);
    if (this.#edge && this.#fromEdge(place) <= 0) return;
    this.#kept.push({ row, place });
    if (this.#kept.length >= this.#wanted * 2 + slackRows) this.#cut();
  }

  /** In the order of the answer, which is the same for a page before a place. */
  rows(): PlacedRow[] {
    this.#cut();
    return this.#edge?.before ? [...this.#kept].reverse() : this.#kept;
  }

  #cut(): void {
    const turn = this.#turn;
    this.#kept.sort((left, right) => turn * this.#keys.compare(left.place, right.place));
    this.#kept = this.#kept.slice(0, this.#wanted);
  }

  /** Positive where the row is on the side of the edge that is wanted. */
  #fromEdge(place: RowPlace): number {
    return this.#edge ? this.#turn * this.#keys.compare(place, this.#edge.place) : 1;
  }

  get #turn(): 1 | -1 {
    return this.#edge?.before ? -1 : 1;
  }
}
