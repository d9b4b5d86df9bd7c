import { expect, test } from 'bun:test';
import { connect, type DocumentOf, type FieldPath, type Query, type Table } from '../../../src/client/client.ts';

// The compiler is what is tested: a line below `@ts-expect-error` that compiles is an error.

interface Recipe {
  readonly title: string;
  readonly minutes: number;
  readonly author?: { readonly name: string; readonly born: number };
  readonly steps: readonly { readonly text: string }[];
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
const holds = <const Truth extends true>(truth: Truth) => expect<boolean>(truth).toBe(true);

test('paths of a document are those of its members, through objects and arrays', () => {
  type Paths = 'title' | 'minutes' | 'author' | 'author.name' | 'author.born' | 'steps' | 'steps.text';
  holds<Same<FieldPath<Recipe>, Paths>>(true);
  holds<Same<FieldPath<Record<string, unknown>>, string>>(true);
});

test('wrong fields of a query do not compile', () => {
  const queries: Query<Recipe>[] = [
    { full_text_search: { match: 'soup', field: 'title' }, fields: ['author.name'], order_by: [{ field: 'minutes' }] },
    { filter_query: { bool: { must: [{ term: { 'title.keyword': 'Soup' } }, { exists: { field: 'author' } }] } } },
    {
      filter_query: [{ range: { minutes: { lt: 5 } } }, { field: 'minutes', min: 1 }],
      order_by: [{ field: '_score' }],
    },
    // @ts-expect-error there is no such field
    { full_text_search: { match: 'soup', field: 'titel' } },
    // @ts-expect-error there is no such field
    { filter_query: { range: { minuets: { lt: 5 } } } },
    // @ts-expect-error there is no such field
    { filter_query: { bool: { must: [{ term: { 'author.nmae': 'x' } }] } } },
    // @ts-expect-error there is no such field
    { order_by: [{ field: 'author.age' }] },
    // @ts-expect-error there is no such field
    { fields: ['steps.txt'] },
    // @ts-expect-error there is no such member of a query
    { filter: { match_all: {} } },
  ];
  expect(queries).toHaveLength(9);
});

test('fields of joined tables go with a join alone', () => {
  const join = { right_table: 'cooks', on: { left_field: 'author.name', right_field: 'name' } };
  const order_by = [{ field: 'cooks.age', desc: true }, { field: 'minutes' }] as const;
  const queries: Query<Recipe>[] = [
    { join, order_by, fields: ['title', 'cooks.age'] },
    { join, order_by: [{ field: 'minutes' }] },
    // @ts-expect-error there is no such field
    { join, order_by: [{ field: 'minuets' }] },
    // @ts-expect-error there is no such field
    { join, fields: ['titel'] },
    // @ts-expect-error nothing is joined
    { order_by },
    // @ts-expect-error nothing is joined
    { fields: ['cooks.age'] },
  ];
  expect(queries).toHaveLength(6);
  type Hits = Parameters<Table<Recipe>['hits']>[0];
  const pages: Hits[] = [
    { join, order_by },
    // @ts-expect-error nothing is joined
    { order_by },
    // @ts-expect-error where its pages begin is not for the caller to say
    { offset: 1 },
  ];
  expect(pages).toHaveLength(3);
});

test('a schema given as const makes the type of its documents', () => {
  const schema = {
    document_schemas: {
      recipe: {
        schema: {
          type: 'object',
          required: ['title', 'size'],
          properties: {
            title: { type: 'string', 'x-service-types': ['text'] },
            minutes: { type: 'integer' },
            size: { enum: ['s', 'm'] },
            tags: { type: 'array', items: { type: 'string' } },
            author: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
          },
        },
      },
    },
  } as const;
  type Wanted = {
    title: string;
    size: 's' | 'm';
    minutes?: number;
    tags?: string[];
    author?: { name: string };
  };
  holds<Same<DocumentOf<typeof schema>, Wanted>>(true);
  holds<Same<DocumentOf<undefined>, Record<string, unknown>>>(true);
  type Other = { document_schemas: { a: { schema: { properties: { x: { type: 'boolean' } } } } } };
  holds<Same<DocumentOf<Other>, { x?: boolean }>>(true);
});

test('a document of another shape does not compile', () => {
  const write = () => {
    const table = connect('http://127.0.0.1:1').table<Recipe>('recipes');
    // @ts-expect-error a title is a text
    void table.put('a', { title: 1, minutes: 1, steps: [] });
    // @ts-expect-error members are missing
    void table.writer().put('a', { title: 'a' });
  };
  expect(write).toBeFunction();
});
