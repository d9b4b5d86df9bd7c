import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import type { TestServer } from '../../support/test-server.ts';

const document = (n: number) => ({ n, _embeddings: { v: [n, 1] } });

async function write(server: TestServer, inserts: object): Promise<void> {
  expect((await server.send('POST', '/db/v1/tables/t/batch', { inserts })).status).toBe(201);
}

/** Changes a row of the only range of a stopped server, but not its checksum. */
function damage(directory: string, sql: string): void {
  const [path] = (readdirSync(directory, { recursive: true }) as string[]).filter((name) =>
    /ranges.*documents\.db$/.test(name),
  );
  using database = new Database(join(directory, String(path)), { readwrite: true, strict: true });
  expect(database.run(sql).changes).toBe(1);
}

describe.each(['portable', 'native'])('S05: a backup of the format "%s"', (format) => {
  test.each([
    [
      'a document',
      `UPDATE documents SET body = CAST('{"n":8}' AS BLOB), raw_bytes = NULL WHERE key = CAST('b' AS BLOB)`,
    ],
    [
      'a vector',
      'UPDATE parts SET crc = crc + 1 WHERE (id & 4294967295) = (SELECT ordinal FROM documents ' +
        `WHERE key = CAST('b' AS BLOB))`,
    ],
  ])(
    'of a range in which %s is damaged fails and names the key; written again, it can be backed up',
    async (_, sql) => {
      using place = new BackupPlace();
      using folder = new TemporaryDirectory();
      const directory = folder.path;
      {
        await using server = await place.server({ directory });
        const indexes = { v: { type: 'embeddings', external: true, dimension: 2 } };
        await server.send('POST', '/db/v1/tables/t', { indexes });
        await write(server, { a: document(1), b: document(2), c: document(3) });
      }
      damage(directory, sql);
      await using server = await place.server({ directory });
      const request = { backup_id: 'b', location: place.location, format };
      const made = await server.send('POST', '/db/v1/backup', request);
      expect(made.body).toMatchObject({
        status: 'failed',
        tables: [{ status: 'failed', code: 'data_corrupted', error: expect.stringContaining('"b"') }],
      });
      expect(place.manifests).toEqual([]);
      expect(place.files('b')).toEqual([]);
      await write(server, { b: document(4) });
      expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
      expect(await restore(server, { ...request, format: undefined, restore_mode: 'overwrite' })).toMatchObject({
        phase: 'succeeded',
      });
      const found = await server.send('GET', '/db/v1/tables/t/lookup/b?fields=n,_embeddings');
      expect(found.body).toMatchObject({ n: 4, _embeddings: { v: [4, 1] } });
    },
  );
});
