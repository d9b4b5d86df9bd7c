import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { cpSync, existsSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { ChildServer } from '../support/fault/child-server.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

const timeout = { timeout: 120_000 };

/** Changes one bit of a file, `at` bytes from its start. */
function flipBit(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8((bytes.readUInt8(at) ^ 0x04) & 0xff, at);
  writeFileSync(path, bytes);
}

/** Changes one bit inside every copy of a text: pages that are no longer used may hold older ones. */
function flipEverywhere(path: string, text: string): void {
  const bytes = readFileSync(path);
  let found = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    bytes.writeUInt8(bytes.readUInt8(at + 3) ^ 0x04, at + 3);
    found += 1;
  }
  expect(found).toBeGreaterThan(0);
  writeFileSync(path, bytes);
}

/** End of the last frame that was written: zeros may follow it, space that is held ahead. */
function writtenBytes(log: Uint8Array): number {
  const last = log.findLastIndex((byte) => byte !== 0);
  return 32 + Math.ceil((last + 1 - 32) / (4096 + 24)) * (4096 + 24);
}

function pairs(count: number): { key: string; note: string }[] {
  return Array.from({ length: count }, (_, i) => ({ key: `k${String(i).padStart(4, '0')}`, note: `note${i}x` }));
}

interface Page {
  hits: { total: { value: number; relation: string }; hits: { _id: string }[] };
  damaged?: number;
}

interface Readiness {
  state: string;
  complete: boolean;
  pending_reasons: string[];
}

/** The sum of a metric over its labels. */
async function metricOf(server: ChildServer, name: string): Promise<number> {
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** Changes of the only range that the catalog knows to be acknowledged. */
function acknowledgedChanges(place: FaultPlace): number {
  using database = new Database(join(place.dataDir, 'catalog.db'), { readonly: true });
  const sql = 'SELECT head - first_sequence + 1 AS n FROM range_heads JOIN ranges ON ranges.id = range_id';
  return (database.query(sql).get() as { n: number } | null)?.n ?? 0;
}

/** A stopped directory with one table of `count` documents. */
async function filled(place: FaultPlace, count: number): Promise<void> {
  await using server = await place.start();
  const wire = new WireClient(server.url);
  await wire.createTable('t');
  const inserts = Object.fromEntries(pairs(count).map(({ key, note }) => [key, { note, words: 'amber birch' }]));
  expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
  expect((await server.stop()).code).toBe(0);
}

describe('S03 a write-ahead log that is cut', () => {
  test(
    'the torn transactions are gone, the ones before are whole, and the start says so',
    async () => {
      const seed = runSeed();
      const random = new SeededRandom(seed);
      using place = new FaultPlace();
      const total = 40;
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        for (let i = 0; i < total; i += 1) {
          const inserts = { [`a${i}`]: { i, pad: 'x'.repeat(900) }, [`b${i}`]: { i } };
          expect((await wire.batch('t', { inserts })).status).toBe(201);
        }
        await until(async () => acknowledgedChanges(place) === 2 * total);
      }
      const kept = `${place.directory}/kept`;
      cpSync(place.dataDir, kept, { recursive: true });
      const log = place.file('documents.db-wal');
      const size = writtenBytes(readFileSync(log));
      for (let round = 0; round < 6; round += 1) {
        rmSync(place.dataDir, { recursive: true });
        cpSync(kept, place.dataDir, { recursive: true });
        const cut = round === 0 ? size - 1 : random.between(100, size - 1);
        truncateSync(log, cut);
        const checked = offlineCheck(place.dataDir);
        expect(checked.code).toBe(1);
        await using server = await place.start();
        const wire = new WireClient(server.url);
        const found = await wire.scan('t');
        const survived = found.size / 2;
        const expected = Array.from({ length: survived }, (_, i) => [`a${i}`, `b${i}`])
          .flat()
          .sort();
        expect({ seed, cut, keys: [...found.keys()].sort() }).toEqual({ seed, cut, keys: expected });
        expect(survived).toBeLessThan(total);
        if (round === 0) expect(survived).toBe(total - 1);
        const missing = `lacks at least ${2 * (total - survived)} `;
        expect(checked.text).toContain(missing);
        await until(async () => server.log.includes(missing));
        const { body } = await wire.send('GET', '/db/v1/status');
        expect(body).toMatchObject({ health: 'degraded', ranges: [{ message: expect.stringContaining(missing) }] });
        expect((await wire.batch('t', { inserts: { after: { n: 1 } }, sync_level: 'full_text' })).status).toBe(201);
        expect(await wire.count('t')).toBe(found.size + 1);
      }
    },
    timeout,
  );

  test(
    'a log that is gone is missed, with what it held at least',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        for (let i = 0; i < 10; i += 1) await wire.batch('t', { inserts: { [`k${i}`]: { i } } });
        await until(async () => acknowledgedChanges(place) === 10);
      }
      rmSync(place.file('documents.db-wal'));
      expect(offlineCheck(place.dataDir)).toEqual({
        code: 1,
        text: expect.stringContaining('lacks at least 10 changes'),
      });
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect((await wire.scan('t')).size).toBe(0);
      expect(server.log).toContain('lacks at least 10 ');
      expect((await wire.batch('t', { inserts: { after: { n: 1 } } })).status).toBe(201);
      expect((await wire.lookup('t', 'after'))?.document).toHaveProperty('n', 1);
    },
    timeout,
  );

  test(
    'a file that was put back to an earlier state is missed after a clean stop',
    async () => {
      using place = new FaultPlace();
      await filled(place, 5);
      const file = place.file('documents.db');
      const earlier = readFileSync(file);
      {
        await using server = await place.start();
        await new WireClient(server.url).batch('t', { inserts: { later: { n: 1 } } });
        expect((await server.stop()).code).toBe(0);
      }
      expect(offlineCheck(place.dataDir).code).toBe(0);
      rmSync(`${file}-wal`, { force: true });
      writeFileSync(file, earlier);
      const { code, text } = offlineCheck(place.dataDir);
      expect(text).toContain('lacks at least 1 changes');
      expect(code).toBe(1);
    },
    timeout,
  );

  test(
    "the catalog's log is gone: a table that it named is kept, and the start says what is wrong",
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        expect((await wire.batch('t', { inserts: { k: { n: 1 } } })).status).toBe(201);
      }
      rmSync(place.file('catalog.db-wal'));
      const failure = await place.start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect((failure as { log: string }).log).toContain('catalog.db has lost its last changes');
      expect(place.files('documents.db').length).toBeGreaterThan(0);
      renameSync(join(place.dataDir, 'ranges/1'), join(place.directory, 'put-aside'));
      await using server = await place.start();
      await new WireClient(server.url).createTable('t');
    },
    timeout,
  );

  test(
    'an index that knows more than the documents after the cut is built again',
    async () => {
      using place = new FaultPlace();
      {
        const environment = { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' };
        await using server = await place.start({ environment });
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        for (let i = 0; i < 30; i += 1) await wire.batch('t', { inserts: { [`k${i}`]: { words: 'amber' } } });
        await until(async () => place.files('checkpoint.json').length === 1);
      }
      const log = place.file('documents.db-wal');
      truncateSync(log, Math.floor(writtenBytes(readFileSync(log)) / 2));
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const survived = (await wire.scan('t')).size;
      expect(survived).toBeLessThan(30);
      const inserts = { fresh: { words: 'birch' } };
      expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
      const found = async (word: string) => {
        const query = { table: 't', full_text_search: { field: 'words', match: word }, limit: 100 };
        return (await wire.query(query)).hits.length;
      };
      expect(await found('birch')).toBe(1);
      expect(await found('amber')).toBe(survived);
    },
    timeout,
  );

  test(
    'damage before a valid transaction is corruption: the range refuses writes and says so',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        for (let i = 0; i < 20; i += 1) await wire.batch('t', { inserts: { [`a${i}`]: { i, pad: 'x'.repeat(900) } } });
      }
      const log = place.file('documents.db-wal');
      flipBit(log, Math.floor(writtenBytes(readFileSync(log)) / 3));
      const checked = offlineCheck(place.dataDir);
      expect(checked.code).toBe(1);
      await using server = await place.start({ awaitReady: false });
      const wire = new WireClient(server.url);
      const answer = await wire.batch('t', { inserts: { fresh: { n: 1 } } });
      expect(answer.status).toBe(500);
      expect(answer.body).toHaveProperty('code', 'data_corrupted');
      expect(JSON.stringify(answer.body)).not.toContain(place.directory);
      expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    },
    timeout,
  );
});

describe('S04 a bit flipped in a stored row', () => {
  test(
    'the read names the key, other keys are served, and the offline check finds it',
    async () => {
      using place = new FaultPlace();
      await filled(place, 50);
      const file = place.file('documents.db');
      flipEverywhere(file, '"note17x"');
      const checked = offlineCheck(place.dataDir);
      expect(checked.code).toBe(1);
      expect(checked.text).toContain('k0017');
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const answer = await wire.send('GET', '/db/v1/tables/t/lookup/k0017');
      expect(answer.status).toBe(500);
      expect(answer.body).toHaveProperty('code', 'data_corrupted');
      expect(JSON.stringify(answer.body)).toContain('k0017');
      expect((await wire.lookup('t', 'k0018'))?.document).toHaveProperty('note', 'note18x');
      expect((await wire.batch('t', { inserts: { k0017: { note: 'again' } } })).status).toBe(201);
      expect((await wire.lookup('t', 'k0017'))?.document).toHaveProperty('note', 'again');
    },
    timeout,
  );

  test(
    'one damaged row keeps neither the index of the others from being built nor a scan from going on',
    async () => {
      using place = new FaultPlace();
      await filled(place, 50);
      flipEverywhere(place.file('documents.db'), '"note17x"');
      for (const path of place.files('/indexes/')) rmSync(path);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const written = await wire.batch('t', { inserts: { fresh: { words: 'amber' } }, sync_level: 'full_text' });
      expect(written.status).toBe(201);
      const query = { table: 't', full_text_search: { field: 'words', match: 'amber' }, limit: 100 };
      const keys = (await wire.query(query)).hits.map(({ _id }) => _id);
      expect(keys.length).toBe(50);
      expect(keys).not.toContain('k0017');
      const scanned = await wire.scan('t', { fields: ['*'] });
      expect(scanned.size).toBe(51);
      expect([...scanned.keys()]).toEqual([...scanned.keys()].sort());
      const error = {
        code: 'data_corrupted',
        message: expect.stringContaining('"k0017" does not match its checksum'),
      };
      expect(scanned.get('k0017')).toEqual({ _error: error as never });
      // Keys alone are there whatever has become of the documents.
      const listed = await wire.scan('t', { fields: [] });
      expect([...listed.keys()]).toEqual([...scanned.keys()]);
      expect(listed.get('k0017')).toEqual({});
      expect(server.log).toContain('does not match its checksum');
      expect(await metricOf(server, 'sundew_damaged_documents_total')).toBe(1);
    },
    timeout,
  );

  test(
    'an index that was built without the damaged row answers as one that lacks something, also after a restart, until the row is mended',
    async () => {
      using place = new FaultPlace();
      await filled(place, 50);
      flipEverywhere(place.file('documents.db'), '"note17x"');
      for (const path of place.files('/indexes/')) rmSync(path);
      const ask = async (wire: WireClient, more: object = {}) => {
        const asked = { table: 't', full_text_search: { field: 'words', match: 'amber' }, limit: 100, ...more };
        const { body } = await wire.expect(200, 'POST', '/db/v1/query', asked);
        const [{ hits, partial }] = (body as unknown as { responses: [{ hits: Page['hits']; partial?: boolean }] })
          .responses;
        return { ...hits.total, partial };
      };
      const readiness = async (wire: WireClient) => {
        const { body } = await wire.expect(200, 'GET', '/db/v1/tables/t/indexes');
        const [{ status }] = body as unknown as [{ status: { readiness: Readiness } }];
        return [status.readiness.state, status.readiness.complete, status.readiness.pending_reasons];
      };
      for (const start of ['the one that builds', 'the next']) {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await until(async () => JSON.stringify(await readiness(wire)) === '["queryable_partial",false,["damaged"]]');
        const short = { value: 49, relation: 'gte', partial: true };
        expect([start, await ask(wire)]).toEqual([start, short]);
        expect(await ask(wire, { count: true, limit: undefined })).toEqual(short);
        expect((await server.stop()).code).toBe(0);
      }
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const inserts = { k0017: { words: 'amber' } };
      expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
      expect(await ask(wire)).toEqual({ value: 50, relation: 'exact', partial: undefined });
      expect(await readiness(wire)).toEqual(['ready', true, []]);
    },
    timeout,
  );

  test(
    'a page leaves the damaged row out and says so; nothing else of the answer changes',
    async () => {
      using place = new FaultPlace();
      await filled(place, 50);
      flipEverywhere(place.file('documents.db'), '"note17x"');
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const ask = async (request: Record<string, unknown>) => {
        const full_text_search = { field: 'words', match: 'amber' };
        const { body } = await wire.expect(200, 'POST', '/db/v1/query', { table: 't', full_text_search, ...request });
        const [result] = (body as unknown as { responses: Page[] }).responses;
        return must(result, 'a result');
      };
      const whole = await ask({ limit: 100 });
      expect(whole.hits.hits.length).toBe(49);
      expect(whole.hits.total).toEqual({ value: 50, relation: 'exact' });
      expect(whole).toMatchObject({ damaged: 1, status: 200 });
      // The next hit takes its place.
      const order = [{ field: 'note', desc: false }];
      const first = await ask({ limit: 12, order_by: order });
      expect(first.hits.hits.length).toBe(12);
      expect(first.hits.hits.map(({ _id }) => _id)).not.toContain('k0017');
      expect(first.damaged).toBe(1);
      expect(await ask({ limit: 1, full_text_search: { field: 'note', match: 'note3x' } })).not.toHaveProperty(
        'damaged',
      );
      expect(await metricOf(server, 'sundew_damaged_documents_total')).toBe(1);
      expect((await wire.batch('t', { inserts: { k0017: { words: 'amber' } }, sync_level: 'full_text' })).status).toBe(
        201,
      );
      expect(await ask({ limit: 100 })).not.toHaveProperty('damaged');
    },
    timeout,
  );

  test(
    'a damaged vector keeps its document out of answers that would show it, and says so',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t', { indexes: { dense: { type: 'embeddings', external: true, dimension: 2 } } });
        const inserts = Object.fromEntries(
          ['a', 'b', 'c'].map((key, at) => [key, { n: at, _embeddings: { dense: [at, 1] } }]),
        );
        await wire.expect(201, 'POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_index' });
        await server.stop();
      }
      {
        using database = new Database(place.file('documents.db'));
        database.run('UPDATE parts SET crc = crc + 1 WHERE sequence = (SELECT max(sequence) FROM parts)');
      }
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect((await wire.lookup('t', 'c'))?.document).toHaveProperty('n', 2);
      const shown = await wire.send('GET', '/db/v1/tables/t/lookup/c?fields=*,_embeddings');
      expect(shown.status).toBe(500);
      expect(shown.body).toHaveProperty('code', 'data_corrupted');
      const scanned = await wire.scan('t', { fields: ['*', '_embeddings'] });
      expect([...scanned.keys()]).toEqual(['a', 'b', 'c']);
      expect(scanned.get('c')).toHaveProperty('_error');
      const query = { table: 't', full_text_search: { match_all: {} }, fields: ['*', '_embeddings'] };
      const { body } = await wire.expect(200, 'POST', '/db/v1/query', query);
      const [page] = (body as unknown as { responses: Page[] }).responses;
      expect(page?.hits.hits.map(({ _id }) => _id).sort()).toEqual(['a', 'b']);
      expect(page?.damaged).toBe(1);
    },
    timeout,
  );
});

describe('S05 damage in files', () => {
  test.each(['zeros', 'nothing'])(
    'documents.db is %s: that is known before anybody asks for a document, and no answer shows a path',
    async (what) => {
      using place = new FaultPlace();
      await filled(place, 50);
      const file = place.file('documents.db');
      writeFileSync(file, what === 'zeros' ? new Uint8Array(readFileSync(file).length) : '');
      expect(offlineCheck(place.dataDir).code).toBe(1);
      const server = await ChildServer.spawn({ dataDir: place.dataDir, control: place.control });
      await using _ = server;
      const wire = new WireClient(server.url);
      const status = () => wire.send('GET', '/db/v1/status').catch(() => undefined);
      await until(async () => JSON.stringify((await status())?.body ?? '').includes('is damaged'));
      expect(server.log).toContain('is damaged');
      const answers = [
        await wire.send('GET', '/db/v1/tables/t/lookup/k0001'),
        await wire.batch('t', { inserts: { k: { n: 1 } } }),
        await wire.send('POST', '/db/v1/tables/t/lookup', {}),
      ];
      for (const { status: code, body } of answers) {
        expect(code).toBe(500);
        expect(body).toHaveProperty('code', 'data_corrupted');
      }
      expect(JSON.stringify([answers, (await status())?.body])).not.toContain(place.directory);
      expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
      expect(Bun.file(file).size).toBe(what === 'zeros' ? readFileSync(file).length : 0);
    },
    timeout,
  );

  test.each(['a segment', 'the checkpoint'])(
    '%s of an index: the index is built again from the documents',
    async (what) => {
      using place = new FaultPlace();
      await filled(place, 200);
      const candidates = place.files('/indexes/');
      const checkpoint = candidates.find((path) => path.endsWith('checkpoint.json'));
      const segments = candidates.filter((path) => /\.(idx|store|fast|term|pos|fieldnorm)$/.test(path));
      expect(checkpoint).toBeDefined();
      expect(segments.length).toBeGreaterThan(0);
      const damaged = what === 'a segment' ? segments : [checkpoint ?? ''];
      for (const path of damaged) flipBit(path, Math.floor(readFileSync(path).byteLength / 2));
      expect(offlineCheck(place.dataDir).code).toBe(1);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await until(async () => {
        await wire.batch('t', { inserts: { marker: { n: 1 } }, sync_level: 'full_text' });
        const found = await wire.query({
          table: 't',
          full_text_search: { field: 'words', match: 'amber' },
          limit: 1_000,
        });
        // Damage that no query met is looked for a moment after the start.
        const isRebuilt = what === 'the checkpoint' || !damaged.some((path) => existsSync(path));
        return found.hits.length === 200 && isRebuilt;
      });
      await server.stop();
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    },
    timeout,
  );

  test(
    'a page of a range file: what cannot be read is refused by name, nothing is made up',
    async () => {
      using place = new FaultPlace();
      await filled(place, 400);
      const file = place.file('documents.db');
      const bytes = readFileSync(file);
      // A leaf of the documents table: its page holds bodies; the header's cell count and offsets become nonsense.
      const page = Math.floor(bytes.indexOf('"note200x"') / 4096) * 4096;
      bytes.fill(0xa5, page, page + 64);
      writeFileSync(file, bytes);
      const checked = offlineCheck(place.dataDir);
      expect(checked.code).toBe(1);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const answer = await wire.send('GET', '/db/v1/tables/t/lookup/k0200');
      expect(answer.status).toBe(500);
      expect(answer.body).toHaveProperty('code', 'data_corrupted');
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    },
    timeout,
  );

  test.each([
    ['format.json', '{"format":'],
    ['catalog.db', 'not a database'.repeat(600)],
  ])(
    'a damaged %s: the start is refused with a reason and nothing is written',
    async (name, content) => {
      using place = new FaultPlace();
      await filled(place, 5);
      for (const path of place.files(name)) {
        if (path.endsWith(name)) writeFileSync(path, content);
      }
      const failure = await place.start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).toHaveProperty('ending.code');
      expect((failure as { ending: { code: number } }).ending.code).toBeGreaterThan(0);
      expect((failure as { log: string }).log).toContain(name);
      expect(readFileSync(place.files(name).find((path) => path.endsWith(name)) ?? '', 'utf8')).toBe(content);
    },
    timeout,
  );
});
