import { afterAll, beforeAll, describe, expect, mock, spyOn, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { FolderStore } from '../../../src/backup/stores/folder-store.ts';
import { verifyBackup } from '../../../src/backup/verify-backup.ts';
import { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { until } from '../../support/fault/until.ts';
import { forge } from '../../support/forged-backup.ts';
import { restore } from '../../support/restore-jobs.ts';
import { linksTold, ofLinks } from '../../support/restored-links.ts';
import { hitKeys, type TestServer } from '../../support/test-server.ts';

const dimension = 128;
/** Bytes enough for a graph once nothing is written. */
const count = 1_200;
const timeout = { timeout: 60_000 };

/** Vectors around thirty centres, the same in every run. */
function drawn(seed: number): () => number[] {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  const centres = Array.from({ length: 30 }, () => Array.from({ length: dimension }, next));
  return () => {
    const centre = centres[Math.floor((next() + 0.5) * centres.length)] ?? [];
    return centre.map((value) => Math.fround(value + next() / 2));
  };
}

const squared = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, at) => sum + (value - (b[at] ?? 0)) ** 2, 0);

/** A table of vectors on a server, and what it holds. */
class World implements Disposable {
  readonly place = new BackupPlace();
  readonly vectors = new Map<string, number[]>();
  readonly draw = drawn(17);

  async fill(server: TestServer): Promise<void> {
    const indexes = { v: { type: 'embeddings', external: true, dimension } };
    await server.send('POST', '/db/v1/tables/t', { num_shards: 1, indexes });
    for (let at = 0; at < count; at += 300) {
      await this.write(
        server,
        Array.from({ length: 300 }, (_, n) => `k${at + n}`),
      );
    }
  }

  async write(server: TestServer, keys: readonly string[], deletes: readonly string[] = []): Promise<void> {
    for (const key of keys) this.vectors.set(key, this.draw());
    for (const key of deletes) this.vectors.delete(key);
    const inserts = Object.fromEntries(keys.map((key) => [key, { key, _embeddings: { v: this.vectors.get(key) } }]));
    const body = { inserts, deletes, sync_level: 'full_index' };
    expect((await server.send('POST', '/db/v1/tables/t/batch', body)).status).toBe(201);
  }

  async backUp(server: TestServer, id: string, more: object = {}): Promise<void> {
    const body = { backup_id: id, location: this.place.location, ...more };
    expect((await server.send('POST', '/db/v1/backup', body)).body).toMatchObject({ status: 'completed' });
  }

  /** Fills the table and backs it up as "b" with links, which its vectors have once the table rests. */
  async backUpLinked(server: TestServer): Promise<void> {
    await this.fill(server);
    let tried = 0;
    await until(async () => {
      tried += 1;
      await this.backUp(server, `try${tried}`);
      return this.linkFiles(`try${tried}`).length > 0;
    });
    await this.backUp(server, 'b');
  }

  async restore(server: TestServer, id: string): Promise<Record<string, unknown> | undefined> {
    const told = linksTold(server).length;
    const body = { backup_id: id, location: this.place.location, restore_mode: 'overwrite' };
    expect(await restore(server, body)).toMatchObject({ phase: 'succeeded' });
    return linksTold(server)[told];
  }

  linkFiles(id: string): string[] {
    return this.place.files(id).filter((name) => name.includes('-links-'));
  }

  /** The share of the ten nearest that are found, by forty queries. */
  async recall(server: TestServer): Promise<number> {
    const draw = drawn(17);
    let found = 0;
    for (let n = 0; n < 40; n += 1) {
      const vector = draw().map((value) => value + 0.01);
      const exact = [...this.vectors].map(([key, each]) => ({ key, far: squared(each, vector) }));
      exact.sort((left, right) => left.far - right.far);
      const nearest = new Set(exact.slice(0, 10).map(({ key }) => key));
      const query = { table: 't', embeddings: { v: vector }, indexes: ['v'], limit: 10 };
      const keys = hitKeys(await server.send('POST', '/db/v1/query', query));
      found += keys.filter((key) => nearest.has(key)).length;
    }
    return found / 400;
  }

  [Symbol.dispose](): void {
    this.place[Symbol.dispose]();
  }
}

// Links are taken for tables of more vectors than may wait.
beforeAll(() => void spyOn(IndexedRange.prototype, 'vectorBytes').mockReturnValue(2 ** 40));
afterAll(() => mock.restore());

describe('a backup of vectors', () => {
  test(
    'brings their links, with which a restore links none of them again and finds what was found before',
    async () => {
      using world = new World();
      await using server = await world.place.server();
      await world.backUpLinked(server);
      const before = await world.recall(server);
      expect(await world.restore(server, 'b')).toMatchObject({
        table: 't',
        index: 'v',
        kept: count,
        relinked: 0,
        left: 0,
      });
      expect(before).toBeGreaterThan(0.97);
      expect(await world.recall(server)).toBeGreaterThan(before - 0.01);
      // The restored table is backed up with the same links.
      await world.backUp(server, 'again');
      const [first, second] = ['b', 'again'].map((id) => world.linkFiles(id).map((name) => readFileSync(name)));
      expect(second).toEqual(first ?? []);
    },
    timeout,
  );

  test(
    'and its increments bring them too: what has changed since waits to be linked',
    async () => {
      using world = new World();
      await using server = await world.place.server();
      await world.backUpLinked(server);
      const changed = Array.from({ length: 60 }, (_, n) => `k${n * 20}`);
      const deleted = Array.from({ length: 60 }, (_, n) => `k${n * 20 + 7}`);
      await world.write(server, [...changed, ...Array.from({ length: 40 }, (_, n) => `new${n}`)], deleted);
      await world.backUp(server, 'more', { base_backup_id: 'b' });
      expect(world.linkFiles('more')).toEqual([]);
      const told = await world.restore(server, 'more');
      expect(told).toMatchObject({ level: 'info' });
      expect(told).toMatchObject({ left: 100 });
      expect(Number(told?.kept) + Number(told?.relinked)).toBe(world.vectors.size - 100);
      expect(Number(told?.kept)).toBeGreaterThan(0.8 * count);
      expect(await world.recall(server)).toBeGreaterThan(0.97);
    },
    timeout,
  );

  test(
    'of which few wait is restored without their links, and they are linked once the table is published',
    async () => {
      using world = new World();
      await using server = await world.place.server();
      await world.backUpLinked(server);
      const bytes = spyOn(IndexedRange.prototype, 'vectorBytes').mockReturnValue(0);
      expect(await world.restore(server, 'b')).toBeUndefined();
      bytes.mockReturnValue(2 ** 40);
      let tried = 0;
      await until(async () => {
        tried += 1;
        await world.backUp(server, `after${tried}`);
        return world.linkFiles(`after${tried}`).length > 0;
      });
      expect(await world.recall(server)).toBeGreaterThan(0.97);
    },
    timeout,
  );

  test(
    'whose links lie is restored without them, and the log says so',
    async () => {
      using world = new World();
      await using server = await world.place.server();
      await world.backUpLinked(server);
      const [name = ''] = world.linkFiles('b');
      const sound = Bun.zstdDecompressSync(readFileSync(name));
      // In front of the links a node has a byte each for its ordinal and number, and four for its key.
      const head = sound.subarray(0, 8 + 6 * count);
      const ring = Buffer.concat([
        head,
        ...Array.from({ length: count }, (_, n) => {
          const place = (n * 7 + 1) % count;
          return Buffer.from(place < 128 ? [1, 1, place] : [1, 1, (place & 0x7f) | 0x80, place >> 7]);
        }),
      ]);
      const cut = sound.subarray(0, sound.byteLength / 2);
      for (const lie of [ring, cut, Buffer.from('no links at all')]) {
        forge(world.place, ofLinks(world.place, 'v', lie));
        const told = await world.restore(server, 'b');
        expect(told).toMatchObject({
          level: 'warn',
          index: 'v',
          kept: 0,
          relinked: 0,
          left: count,
          reason: expect.any(String),
        });
        expect(await world.recall(server)).toBeGreaterThan(0.97);
      }
      forge(world.place, ofLinks(world.place, 'v', sound));
      expect(await world.restore(server, 'b')).toMatchObject({ level: 'info', kept: count, relinked: 0, left: 0 });
      // Of an index that the table does not have they are not even read.
      forge(world.place, ofLinks(world.place, 'other', cut));
      expect(await world.restore(server, 'b')).toBeUndefined();
    },
    timeout,
  );

  test(
    'is damaged where its links are: a flipped bit is found, and nothing is restored',
    async () => {
      using world = new World();
      await using server = await world.place.server();
      await world.backUpLinked(server);
      const verify = () => verifyBackup(new FolderStore(world.place.path, world.place.path), 'b');
      const { tables } = await verify();
      expect(tables).toMatchObject([{ name: 't', documents: count, files: 2 }]);
      const [name = ''] = world.linkFiles('b');
      const bytes = readFileSync(name);
      for (const at of [0, Math.floor(bytes.byteLength / 2), bytes.byteLength - 1]) {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] ?? 0) ^ 1;
        writeFileSync(name, damaged);
        await expect(verify()).rejects.toMatchObject({ code: 'backup_corrupted' });
      }
      const body = { backup_id: 'b', location: world.place.location, restore_mode: 'overwrite' };
      const job = await restore(server, body);
      expect(job).toMatchObject({ phase: 'failed', error: expect.stringContaining('backup_corrupted') });
      expect(await world.recall(server)).toBeGreaterThan(0.97);
    },
    timeout,
  );
});
