import { expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { restore } from '../../support/restore-jobs.ts';

test('a backup between the deletion of a document and the sweep of its edges restores none of them', async () => {
  using place = new BackupPlace();
  // The clock stands still, so that nothing is swept.
  await using server = await place.server({ clock: new FakeClock() });
  const table = await GraphTable.create(server, 't', { shards: 3 });
  const backUp = async (id: string, more: object = {}) => {
    const made = await server.send('POST', '/db/v1/backup', { backup_id: id, location: place.location, ...more });
    expect(made.body).toMatchObject({ status: 'completed' });
  };
  await table.link({ a: ['m', 'z'], m: ['a'], z: ['m'] });
  await backUp('before');
  await table.batch({ deletes: ['m'] });
  await backUp('full');
  await backUp('increment', { base_backup_id: 'before' });
  for (const id of ['full', 'increment']) {
    expect(await restore(server, { backup_id: id, location: place.location, restore_mode: 'overwrite' })).toMatchObject(
      {
        phase: 'succeeded',
      },
    );
    await table.batch({ inserts: { m: { again: true } }, sync_level: 'full_index' });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    expect(await table.arrows('a')).toEqual(['a>z']);
    await table.link({ z: ['m'] });
    expect(await table.arrows('m', '&direction=in')).toEqual(['z>m']);
  }
});
