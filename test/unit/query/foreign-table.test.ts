import { expect, test } from 'bun:test';
import type { ForeignDatabase } from '../../../src/connections/foreign/foreign-database.ts';
import { ForeignTable } from '../../../src/query/foreign/foreign-table.ts';

/** A table of numbered rows; it notes the most rows that one statement gave, and how many all of them did. */
class NumberedRows {
  readonly #count: number;
  readonly #text: string;
  most = 0;
  given = 0;
  open = 0;

  constructor(count: number, text: string) {
    this.#count = count;
    this.#text = text;
  }

  table(limit?: number): ForeignTable {
    const database: ForeignDatabase = {
      dialect: 'sqlite',
      table: 'numbers',
      columns: async () => [],
      open: async () => {
        this.open += 1;
        return {
          select: async (_, values) => this.#select(Number(values.at(-2)), Number(values.at(-1))),
          [Symbol.asyncDispose]: async () => {
            this.open -= 1;
          },
        };
      },
    };
    return new ForeignTable({
      database,
      source: { connection: 'crm', table: 'numbers', keyColumn: 'id', columns: undefined },
      columns: [
        { name: 'id', kind: 'integer' },
        { name: 'text', kind: 'text' },
      ],
      filter: undefined,
      keyPrefix: undefined,
      limit,
    });
  }

  #select(limit: number, offset: number): { id: bigint; text: string }[] {
    const count = Math.max(0, Math.min(limit, this.#count - offset));
    this.most = Math.max(this.most, count);
    this.given += count;
    return Array.from({ length: count }, (_, at) => ({ id: BigInt(offset + at), text: this.#text }));
  }
}

test('large rows of a foreign table are refused before many more of them are read than may be held', async () => {
  const rows = new NumberedRows(5_000, 'x'.repeat(1_000_000));
  expect(
    await rows
      .table()
      .all()
      .catch(({ code }) => code),
  ).toBe('limit_exceeded');
  expect(rows.given).toBeLessThan(120);
  const page = { sort: [], limit: 5_000, offset: 1_000 };
  expect(
    await rows
      .table()
      .page(page)
      .catch(({ code }) => code),
  ).toBe('limit_exceeded');
  expect(rows).toMatchObject({ most: 100, open: 0 });
});

test('a foreign table is read in few statements, each row once, up to its limit', async () => {
  const rows = new NumberedRows(20_000, 'x'.repeat(1_000));
  const all = await rows.table().all();
  expect(new Set(all.map(({ key }) => key)).size).toBe(20_000);
  expect(rows.given).toBe(20_000);
  expect(rows.most).toBeWithin(3_000, 4_500);
  expect(await rows.table(777).all()).toHaveLength(777);
  expect(await rows.table(0).all()).toEqual([]);
  const page = await rows.table().page({ sort: [], limit: 300, offset: 19_900 });
  expect(page.map(({ key }) => key)).toEqual(Array.from({ length: 100 }, (_, at) => String(19_900 + at)));
  expect(rows.open).toBe(0);
});
