import { expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const minuteMs = 60_000;
const inHours = (hours: number, clock: FakeClock) => new Date(clock.nowMs() + hours * 60 * minuteMs).toISOString();

async function shown(server: TestServer): Promise<string[]> {
  const looked: string[] = [];
  for (const table of ['written', 'seen']) {
    for (const key of ['early', 'late', 'again']) {
      const { status } = await server.send('GET', `/db/v1/tables/${table}/lookup/${key}`);
      if (status === 200) looked.push(`${table}/${key}`);
    }
  }
  return looked;
}

test.each([
  ['portable', false],
  ['portable', true],
  ['native', false],
  ['native', true],
])(
  'documents end as they would have without a restore of the format "%s", an increment: %p',
  async (format, isIncrement) => {
    using place = new BackupPlace();
    const clock = new FakeClock();
    {
      await using server = await place.server({ clock });
      await server.send('POST', '/db/v1/tables/written', { num_shards: 2, schema: { ttl: { duration: '1h' } } });
      await server.send('POST', '/db/v1/tables/seen', { schema: { ttl: { duration: '1h', field: 'seen' } } });
      const write = async (key: string, hours: number) => {
        const seen = inHours(hours, clock);
        for (const [table, document] of [
          ['written', { n: 1 }],
          ['seen', { seen }],
        ] as const) {
          const body = { inserts: { [key]: document }, sync_level: 'full_index' };
          expect((await server.send('POST', `/db/v1/tables/${table}/batch`, body)).status).toBe(201);
        }
      };
      const backUp = async (id: string, more: object) => {
        const made = await server.send('POST', '/db/v1/backup', { backup_id: id, location: place.location, ...more });
        expect(made.body).toMatchObject({ status: 'completed' });
      };
      await write('early', -0.5);
      await write('again', -0.5);
      if (isIncrement) await backUp('full', { format });
      clock.jump(30 * minuteMs);
      await write('again', 0);
      await write('late', 0);
      await backUp('b', isIncrement ? { base_backup_id: 'full' } : { format });
    }
    await using server = await place.server({ clock });
    expect(await restore(server, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
    const late = ['written/late', 'written/again', 'seen/late', 'seen/again'];
    // One that has ended by now is not shown, though it was not removed yet.
    expect(await shown(server)).toEqual(['written/early', ...late]);
    clock.jump(30 * minuteMs);
    expect(await shown(server)).toEqual(late);
    clock.jump(30 * minuteMs);
    expect(await shown(server)).toEqual([]);
  },
);
