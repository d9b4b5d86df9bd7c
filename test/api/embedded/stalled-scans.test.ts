import { expect, test } from 'bun:test';
import { open } from '../../../src/embedded.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const url = 'http://localhost/db/v1/tables/notes';
/** Several pages. */
const documents = 4_000;

async function withNotes({ path }: TemporaryDirectory) {
  const db = await open(path, { settings: { storage: { reserve: 0 } } });
  const notes = await db.createTable('notes');
  const inserts = Object.fromEntries(Array.from({ length: documents }, (_, at) => [`k${at}`, { text: 'tea' }]));
  await notes.batch({ inserts });
  return db;
}

test('a reader of a scan that waits holds up no drop of the table, and sees that its answer is cut', async () => {
  using directory = new TemporaryDirectory();
  await using db = await withNotes(directory);
  const scan = await db.handler(new Request(`${url}/lookup`, { method: 'POST', body: '{}' }));
  const reader = scan.body?.getReader();
  await reader?.read();
  expect((await db.handler(new Request(url, { method: 'DELETE' }))).status).toBe(204);
  await db.createTable('notes');
  const rest = async () => {
    while (!(await reader?.read())?.done);
  };
  expect(await rest().catch((error: Error) => error.message)).toContain('was dropped or replaced while');
});

test('a scan whose signal fires is cut, and does not end as if it were whole', async () => {
  using directory = new TemporaryDirectory();
  await using db = await withNotes(directory);
  const stop = new AbortController();
  const request = new Request(`${url}/lookup`, { method: 'POST', body: '{}', signal: stop.signal });
  const reader = (await db.handler(request)).body?.getReader();
  await reader?.read();
  stop.abort();
  const rest = async () => {
    while (!(await reader?.read())?.done);
  };
  expect(
    await rest().then(
      () => 'whole',
      () => 'cut',
    ),
  ).toBe('cut');
});
