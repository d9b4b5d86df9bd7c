import { expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';

/** Copies of a text that are more than 64 MiB together. */
const artifacts = Array.from({ length: 13 }, (_, n) => `copy${n}`);
const text = 'ab '.repeat(1_380_000);

test(
  'a document whose artifacts are much larger than any document comes back with all of them',
  async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    const path = '/db/v1/tables/t';
    await server.send('POST', path);
    for (const name of artifacts) {
      const enrichment = { kind: 'asset', field: 'text' };
      expect((await server.send('PUT', `${path}/artifacts/${name}/enrichment`, enrichment)).status).toBe(200);
    }
    const written = await server.send('POST', `${path}/batch`, { inserts: { a: { text } }, sync_level: 'enrichments' });
    expect(written.status).toBe(201);
    const stored = () =>
      Promise.all(
        artifacts.map(async (name) => {
          const { body } = await server.send('GET', `${path}/lookup/a?fields=_artifacts.${name}`);
          const shown = JSON.stringify(body);
          return { name, characters: shown.length, hash: Bun.hash(shown) };
        }),
      );
    const before = await stored();
    for (const { characters } of before) expect(characters).toBeGreaterThanOrEqual(text.trim().length);
    const made = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
    expect(made.body).toMatchObject({ status: 'completed' });
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    expect(await stored()).toEqual(before);
  },
  { timeout: 60_000 },
);
