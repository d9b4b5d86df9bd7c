import { describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

const timeout = { timeout: 120_000 };
const fixtures = join(import.meta.dir, '../fixtures/data-directories');

interface Expected {
  documents: Record<string, Record<string, unknown>>;
  version_of_k01: string;
}

const names = readdirSync(fixtures).flatMap((file) => (file.endsWith('.json') ? [file.slice(0, -5)] : []));

/** Data directories of earlier formats; `test/support/fault/make-data-directory.ts` makes one for each step. */
describe('a data directory that an earlier release left after a kill', () => {
  test.each(names)(
    '%s is opened, finished and served, and takes writes',
    async (name) => {
      const expected = (await Bun.file(join(fixtures, `${name}.json`)).json()) as Expected;
      using place = new FaultPlace();
      const unpacked = Bun.spawnSync(['tar', '-xzf', join(fixtures, `${name}.tar.gz`), '-C', place.dataDir]);
      expect(unpacked.exitCode).toBe(0);
      expect(offlineCheck(place.dataDir)).toEqual({
        code: 0,
        text: expect.stringContaining('the next start finishes 1 committed writes over several ranges'),
      });
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        for (const [table, documents] of Object.entries(expected.documents)) {
          expect(Object.fromEntries(await wire.scan(table, { fields: ['*', '_embeddings'] }))).toEqual(
            documents as never,
          );
        }
        expect((await wire.lookup('words', 'k01'))?.version).toBe(expected.version_of_k01);
        const fresh = { words: 'redo', _embeddings: { dense: [5, 1, 0.1], sparse: { '5': 0.5 } } };
        const batch = { inserts: { fresh }, sync_level: 'full_index' };
        await wire.expect(201, 'POST', '/db/v1/tables/words/batch', batch);
        const keysOf = async (query: Record<string, unknown>) =>
          (await wire.query({ table: 'words', limit: 2, ...query } as never)).hits.map(({ _id }) => _id);
        const text = await keysOf({ full_text_search: { field: 'words', match: 'redo' }, limit: 10 });
        expect(text.sort()).toEqual(['!redo', 'fresh', 'kredo', '~redo']);
        expect(await keysOf({ indexes: ['dense'], embeddings: { dense: [5, 1, 0.1] } })).toContain('fresh');
        expect(await keysOf({ indexes: ['sparse'], embeddings: { sparse: { '5': 1 } } })).toContain('fresh');
        expect((await server.stop()).code).toBe(0);
      }
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    },
    timeout,
  );
});
