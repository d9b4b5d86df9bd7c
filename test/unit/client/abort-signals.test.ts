import { expect, test } from 'bun:test';
import { connect } from '../../../src/client/client.ts';
import type { CallOptions } from '../../../src/client/requester.ts';

/** A server that never answers. */
const db = connect('http://127.0.0.1:1', {
  fetch: (request) =>
    new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason))),
});
const table = db.table('t');
const index = table.index('i');
const messages = [{ role: 'user' as const, content: 'a' }];

const first = (rows: AsyncGenerator<unknown>) => rows.next();
const written = (options: CallOptions) => {
  const writer = table.writer(options);
  return writer.put('a', {}).then(() => writer.flush());
};

const methods: Record<string, (options: CallOptions) => Promise<unknown>> = {
  'db.createTable': (options) => db.createTable('t', {}, options),
  'db.tables': (options) => db.tables(options),
  'db.commit': (options) => db.commit({ read_set: [], tables: {} }, options),
  'db.transaction': (options) => db.transaction(async () => 1, options),
  'db.sql': (options) => db.sql('SELECT 1', [], options),
  'db.request': (options) => db.request('GET', '/db/v1/status', undefined, options),
  'table.create': (options) => table.create({}, options),
  'table.status': (options) => table.status(options),
  'table.drop': (options) => table.drop(options),
  'table.setSchema': (options) => table.setSchema({}, options),
  'table.get': (options) => table.get('a', options),
  'table.getVersioned': (options) => table.getVersioned('a', options),
  'table.put': (options) => table.put('a', {}, options),
  'table.delete': (options) => table.delete('a', options),
  'table.batch': (options) => table.batch({ inserts: { a: {} } }, options),
  'table.merge': (options) => table.merge({ records: {} }, options),
  'table.writer': written,
  'table.query': (options) => table.query({}, options),
  'table.hits': (options) => first(table.hits({}, options)),
  'table.scan': (options) => first(table.scan({}, options)),
  'index.create': (options) => index.create({ type: 'algebraic', derive_from_schema: true }, options),
  'index.preview': (options) => index.preview({}, options),
  'index.get': (options) => index.get(options),
  'index.drop': (options) => index.drop(options),
  'index.ready': (options) => index.ready(options),
  'inference.chat': (options) => db.inference.chat({ model: 'm', messages }, options),
  'inference.chatStream': (options) => first(db.inference.chatStream({ model: 'm', messages }, options)),
  'inference.embed': (options) => db.inference.embed({ model: 'm', input: ['a'] }, options),
  'inference.rerank': (options) => db.inference.rerank({ model: 'm', query: 'a', prompts: ['b'] }, options),
};

test.each(Object.keys(methods))(
  '%s ends with the reason of its signal, before it is sent and on its way',
  async (name) => {
    const reason = new Error('left');
    const call = methods[name];
    const ended = (options: CallOptions) => call?.(options).catch((error: unknown) => error);
    expect(await ended({ signal: AbortSignal.abort(reason) })).toBe(reason);
    const leaving = new AbortController();
    const asked = ended({ signal: leaving.signal });
    leaving.abort(reason);
    expect(await asked).toBe(reason);
  },
);

test('no method of the client is left out', () => {
  const named = (of: object, name: string) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(of))
      .filter((method) => method !== 'constructor')
      .map((method) => `${name}.${method}`);
  const all = [
    ...named(db, 'db'),
    ...named(table, 'table'),
    ...named(index, 'index'),
    ...named(db.inference, 'inference'),
  ];
  // These give what is asked later.
  const silent = ['db.table', 'table.index'];
  expect(all.filter((method) => !silent.includes(method)).sort()).toEqual(Object.keys(methods).sort());
});
