import { expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { forge } from '../../support/forged-backup.ts';
import { restore } from '../../support/restore-jobs.ts';

test('an index that is dropped while its table is copied leaves vectors in a backup, which is restored without them', async () => {
  using place = new BackupPlace();
  await using server = await place.server();
  const index = { type: 'embeddings', external: true, dimension: 2 };
  await server.send('POST', '/db/v1/tables/t', { indexes: { kept: index, dropped: index } });
  const inserts = { a: { n: 1, _embeddings: { kept: [1, 0], dropped: [0, 1] } } };
  await server.send('POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_index' });
  const made = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
  expect(made.body).toMatchObject({ status: 'completed' });
  // The lines are written by what the table has when the copy begins, the manifest by what it has at the cut.
  forge(place, {
    table: (table) => {
      table.indexes = table.indexes.filter(({ name }) => name !== 'dropped');
    },
  });
  const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
  expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
  const { body } = await server.send('GET', '/db/v1/tables/t/lookup/a?fields=n,_embeddings');
  expect(body).toEqual({ n: 1, _embeddings: { kept: [1, 0] } });
  const { body: table } = await server.send<{ indexes: object }>('GET', '/db/v1/tables/t');
  expect(Object.keys(table.indexes)).toEqual(['full_text_index_v0', 'kept']);
});
