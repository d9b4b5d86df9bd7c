import { expect, test } from 'bun:test';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import { hitKeys } from '../../support/test-server.ts';

const fixtures = join(import.meta.dir, '../../fixtures/backups');

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
});
