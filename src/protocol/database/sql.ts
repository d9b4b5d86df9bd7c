import { Type } from '@sinclair/typebox';

const value = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

export const sqlRequest = Type.Object({
  sql: Type.String({ description: 'One SELECT, WITH, VALUES or EXPLAIN QUERY PLAN, in the SQL of SQLite.' }),
  parameters: Type.Optional(Type.Array(value, { description: 'For each `?` in order.' })),
  timeout_ms: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Up to the bound that the operator gives queries.' }),
  ),
});

export const sqlResponse = Type.Object({
  columns: Type.Array(Type.String()),
  rows: Type.Array(
    Type.Array(Type.Unknown(), {
      description: 'In the order of the columns; integers beyond 2^53 and infinite numbers are texts.',
    }),
  ),
});
