import { expect, test } from 'bun:test';
import type { ForeignColumn, SqlDialect } from '../../../src/connections/foreign/foreign-database.ts';
import { SqlWriter } from '../../../src/query/foreign/sql-filter.ts';

const columns: ForeignColumn[] = [
  { name: 'id', kind: 'integer' },
  { name: 'exact', kind: 'number' },
];
const unsigned = '18446744073709551615';
const long = '-9223372036854775808';
const decimal = '12345678901234567890.5';
const values = [7, '7', long, unsigned, '18446744073709551616', decimal, '0.5', 'x'];

function asked(dialect: SqlDialect, ask: (writer: SqlWriter) => string): unknown[] {
  const writer = new SqlWriter(dialect, columns, 'id');
  ask(writer);
  return writer.values;
}

test('numbers that are texts in rows are asked for where a column may have them', () => {
  expect(asked('mysql', (writer) => writer.isOneOf('id', values))).toEqual([7, long, unsigned]);
  expect(asked('postgres', (writer) => writer.isOneOf('id', values))).toEqual([7, long]);
  const numbers = [7, long, unsigned, '18446744073709551616', decimal];
  expect(asked('postgres', (writer) => writer.isOneOf('exact', values))).toEqual(numbers);
  expect(asked('mysql', (writer) => writer.hasKey(values.map(String)))).toEqual([7, 7, long, unsigned]);
});

test('a column of numbers is asked for texts where the database keeps them', () => {
  const texts = ['N/A', '', '7', ' 7.0 ', '1e5', '.5'];
  expect(asked('sqlite', (writer) => writer.isOneOf('exact', texts))).toEqual(['N/A', '']);
  expect(asked('postgres', (writer) => writer.isOneOf('exact', texts))).toEqual([]);
});
