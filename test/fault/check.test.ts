import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { must } from '../../src/lib/assert.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(120_000);

const timeout = { timeout: 120_000 };

interface Details {
  status: { doc_count: number; rebuilding: boolean };
}

async function filled(place: FaultPlace): Promise<void> {
  await using server = await place.start();
  const wire = new WireClient(server.url);
  const indexes = {
    dense: { type: 'embeddings', external: true, dimension: 2 },
    sparse: { type: 'embeddings', external: true, sparse: true },
  };
  await wire.createTable('t', { num_shards: 3, indexes });
  const document = { words: 'amber', _embeddings: { dense: [1, 2], sparse: { '3': 0.5 } } };
  const inserts = Object.fromEntries(['!a', '!b', 'k', '~z'].map((key) => [key, document]));
  await wire.batch('t', { inserts, sync_level: 'full_index' });
  await wire.batch('t', { deletes: ['!b'] });
  await server.stop();
}

/** Breaks a rule of a file's contents that SQLite itself does not know. */
function alter(path: string, sql: string): void {
  using database = new Database(path);
  database.run(sql);
}

describe('sundew check', () => {
  test(
    'finds nothing in a sound directory, counts it, and leaves every file as it was',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      const before = place.fingerprint();
      const { code, text } = offlineCheck(place.dataDir, '--json');
      expect(code).toBe(0);
      expect(JSON.parse(text)).toEqual({
        data_dir: place.dataDir,
        ok: true,
        tables: 1,
        ranges: 3,
        documents: 3,
        indexes: 9,
        findings: [],
        notes: [],
      });
      const kept = (files: Record<string, string>) =>
        Object.entries(files).filter(([name]) => !/LOCK|-shm$|-wal$/.test(name));
      expect(kept(place.fingerprint())).toEqual(kept(before));
    },
    timeout,
  );

  test(
    'finds nothing wrong after a kill before the first checkpoint of an index, of whatever kind',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        const indexes = {
          dense: { type: 'embeddings', external: true, dimension: 2 },
          sparse: { type: 'embeddings', external: true, sparse: true },
          links: { type: 'graph' },
        };
        await wire.createTable('t', { indexes });
        await wire.batch('t', { inserts: { k: { words: 'amber' } }, sync_level: 'full_index' });
        await server.kill();
      }
      expect(offlineCheck(place.dataDir)).toEqual({ code: 0, text: expect.stringContaining('nothing is wrong') });
    },
    timeout,
  );

  const damages: [string, string, string, RegExp][] = [
    ['a counter', 'documents.db', 'UPDATE changes SET documents = documents + 1', /counters/],
    ['a body', 'documents.db', "UPDATE documents SET body = CAST('{}' AS BLOB)", /does not match its checksum/],
    ['a key of another range', 'documents.db', "UPDATE documents SET key = CAST('zzz' AS BLOB)", /outside/],
    ['a later release', 'documents.db', 'PRAGMA user_version = 1000', /start that release.*\n.*; 1 things are wrong/],
    ['a vector', 'documents.db', 'UPDATE parts SET crc = crc + 1', /part 2 of "!a" does not match its checksum/],
    ['a change that is missing', 'documents.db', 'DELETE FROM changes WHERE deleted = 0', /change feed|counters/],
    ['a gap between ranges', 'catalog.db', "UPDATE ranges SET start_key = 'd' WHERE start_key = 'c'", /starts at/],
    ['a table record', 'catalog.db', "UPDATE tables SET record = '{'", /record is not JSON/],
    ['a redo record', 'catalog.db', "INSERT INTO redo VALUES (99, x'0900000000000000')", /cannot be read/],
  ];
  test.each(damages)(
    'finds %s',
    async (_, name, sql, finding) => {
      using place = new FaultPlace();
      await filled(place);
      const [file] = place.files(name).filter((path) => path.endsWith(name));
      alter(file ?? '', sql);
      const { code, text } = offlineCheck(place.dataDir);
      expect(text).toMatch(finding);
      expect(code).toBe(1);
    },
    timeout,
  );

  test.each(['dense', 'sparse'])(
    'finds damage in a %s index, and the next start builds it from the stored vectors',
    async (index) => {
      using place = new FaultPlace();
      await filled(place);
      const largest = place
        .files(`/${index}@`)
        .filter((path) => !path.endsWith('checkpoint.json'))
        .sort((left, right) => statSync(right).size - statSync(left).size)[0];
      const path = must(largest, 'a file of the index');
      const bytes = readFileSync(path);
      bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1);
      writeFileSync(path, bytes);
      const { code, text } = offlineCheck(place.dataDir);
      expect(text).toMatch(new RegExp(`index "${index}": .*; the next start builds it again`));
      expect(code).toBe(1);
      await using server = await place.start();
      const details = `${server.url}/db/v1/tables/t/indexes/${index}`;
      await until(async () => {
        const { status } = (await (await fetch(details)).json()) as Details;
        const isDamaged = existsSync(path) && readFileSync(path).equals(bytes);
        return !isDamaged && status.doc_count === 3 && !status.rebuilding;
      });
      await server.stop();
      expect(offlineCheck(place.dataDir).code).toBe(0);
    },
    timeout,
  );

  test(
    'finds a range that has lost its file',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      for (const name of readdirSync(`${place.dataDir}/ranges/2/1`)) {
        rmSync(`${place.dataDir}/ranges/2/1/${name}`, { recursive: true });
      }
      expect(offlineCheck(place.dataDir)).toEqual({
        code: 1,
        text: expect.stringContaining('range 2 has lost its file'),
      });
    },
    timeout,
  );

  test(
    'finds an index that has lost its directory, and the next start builds it again',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      rmSync(`${place.dataDir}/ranges/1/1/indexes/dense@2`, { recursive: true });
      expect(offlineCheck(place.dataDir)).toEqual({
        code: 1,
        text: expect.stringContaining('index "dense": its directory is missing; the next start builds it again'),
      });
      {
        await using server = await place.start();
        const batch = { inserts: { k: { words: 'birch' } }, sync_level: 'full_index' };
        expect((await new WireClient(server.url).batch('t', batch)).status).toBe(201);
        const details = (await (await fetch(`${server.url}/db/v1/tables/t/indexes/dense`)).json()) as Details;
        expect(details.status.doc_count).toBe(3);
        await server.stop();
      }
      expect(offlineCheck(place.dataDir).code).toBe(0);
    },
    timeout,
  );

  test(
    'takes a directory of an index that an earlier release had yet to make for no damage',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      rmSync(`${place.dataDir}/ranges/1/1/indexes/dense@2`, { recursive: true });
      alter(`${place.dataDir}/ranges/1/1/documents.db`, 'PRAGMA user_version = 5');
      expect(offlineCheck(place.dataDir)).toEqual({
        code: 0,
        text: expect.stringContaining('index "dense": its directory is missing; the next start builds it again'),
      });
    },
    timeout,
  );

  test(
    'a start refuses a directory that belongs to somebody else, and leaves it as it was',
    async () => {
      using place = new FaultPlace();
      writeFileSync(`${place.dataDir}/letter.txt`, 'mine');
      const failure = await place.start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect((failure as { log: string }).log).toContain('is not empty and holds no data of a server: letter.txt');
      expect(place.files('')).toEqual([`${place.dataDir}/letter.txt`]);
    },
    timeout,
  );

  test('refuses what is no data directory', () => {
    using place = new FaultPlace();
    expect(offlineCheck(place.dataDir)).toEqual({ code: 1, text: expect.stringContaining('holds no data') });
    expect(place.files('')).toEqual([]);
  });
});
