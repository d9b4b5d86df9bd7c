import { afterAll, beforeAll, expect, mock, spyOn, test } from 'bun:test';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import { linksTold } from '../../support/restored-links.ts';
import { hitKeys } from '../../support/test-server.ts';

const fixtures = join(import.meta.dir, '../../fixtures/backups');

// Links are taken for tables of more vectors than may wait.
beforeAll(() => void spyOn(IndexedRange.prototype, 'vectorBytes').mockReturnValue(2 ** 40));
afterAll(() => mock.restore());

test.each(readdirSync(fixtures))('the archive of every released format is restored: %s', async (format) => {
  using place = new BackupPlace();
  cpSync(join(fixtures, format), place.path, { recursive: true });
  await using server = await place.server();
  const job = await restore(server, { backup_id: 'golden-more', location: place.location });
  expect(job).toMatchObject({ phase: 'succeeded', published_table_count: 1 });
  const query = { table: 'books', full_text_search: { query: 'title:third' } };
  expect(hitKeys(await server.send('POST', '/db/v1/query', query))).toEqual(['z']);
  expect((await server.send('GET', '/db/v1/tables/books/lookup/a')).body).toMatchObject({ title: 'first again' });
  expect((await server.send('GET', '/db/v1/tables/books/lookup/m')).status).toBe(404);
  const near = { table: 'books', embeddings: { v: [1, 2, 3] }, indexes: ['v'], limit: 1 };
  expect(hitKeys(await server.send('POST', '/db/v1/query', near))).toEqual(['z']);
  // Vectors that were kept, linked again and left: in the second range the only neighbour of one is gone, and the other
  // came later.
  const told = linksTold(server).map(({ kept, relinked, left }) => [kept, relinked, left]);
  expect(told).toEqual(
    format === 'format-3'
      ? [
          [2, 0, 0],
          [0, 1, 1],
        ]
      : [],
  );
});
