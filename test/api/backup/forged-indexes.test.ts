import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ArchiveFile, sha256Of, type TableManifest } from '../../../src/backup/archive/manifest.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { SeededRandom } from '../../support/fault/seeded-random.ts';
import { until } from '../../support/fault/until.ts';
import { forge } from '../../support/forged-backup.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const timeout = { timeout: 120_000 };
const names = ['amber', 'birch', 'cedar', 'daisy'];
const documents = 400;

async function fill(server: TestServer): Promise<void> {
  const indexes = {
    v: { type: 'embeddings', external: true, dimension: 8 },
    s: { type: 'embeddings', external: true, sparse: true },
    g: { type: 'graph' },
  };
  expect((await server.send('POST', '/db/v1/tables/t', { indexes })).status).toBeLessThan(300);
  const inserts = Object.fromEntries(
    Array.from({ length: documents }, (_, n) => [
      `k${n}`,
      {
        n,
        words: `${names[n % 4]} ${names[(n + 1) % 4]} w${n}`,
        _embeddings: {
          v: Array.from({ length: 8 }, (_, at) => Math.sin(n * 8 + at)),
          s: { indices: [n % 50, 50 + (n % 7)], values: [1, 0.5] },
        },
        _edges: { g: { near: [{ target: `k${(n + 1) % documents}` }] } },
      },
    ]),
  );
  const written = await server.send('POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_index' });
  expect(written.body).toMatchObject({ status: 'committed' });
}

async function backedUp(place: BackupPlace): Promise<void> {
  await using server = await place.server();
  await fill(server);
  const made = await server.send('POST', '/db/v1/backup', {
    backup_id: 'b',
    location: place.location,
    format: 'native',
  });
  expect(made.body).toMatchObject({ status: 'completed' });
}

type Change = (bytes: Uint8Array) => void;

/**
 * Gives every file of an index that the image has other bytes, and a manifest that
 * fits; with `isWhole` checksums of indexes that fit, too.
 */
function forgeIndexes(place: BackupPlace, change: Change, isWhole = false): number {
  let forged = 0;
  forge(place, {
    table: ({ ranges }: TableManifest) => {
      const files = ranges.flatMap(({ image = [] }) => image).filter(({ path }) => path.startsWith('indexes/'));
      const checkpoints = files.filter(({ path }) => path.endsWith('/checkpoint.json'));
      const crcs = new Map<string, number>();
      for (const { path, file } of files) {
        if (file.blocks.length !== 1 || path.endsWith('/checkpoint.json')) continue;
        replaceFile(place, file, (bytes) => {
          if (isWhole) changeBody(bytes, change);
          else change(bytes);
          crcs.set(path, Bun.hash.crc32(bytes));
          return bytes;
        });
        forged += 1;
      }
      if (!isWhole) return;
      for (const { path, file } of checkpoints) replaceFile(place, file, (text) => withCrcs(path, text, crcs));
    },
  });
  return forged;
}

function replaceFile(place: BackupPlace, file: ArchiveFile, change: (bytes: Uint8Array) => Uint8Array): void {
  const path = join(place.path, file.name);
  const bytes = change(new Uint8Array(Bun.zstdDecompressSync(readFileSync(path))));
  const payload = Bun.zstdCompressSync(bytes);
  writeFileSync(path, payload);
  const blocks = [{ bytes: payload.byteLength, size: bytes.byteLength, crc: Bun.hash.crc32(payload) }];
  Object.assign(file, { bytes: payload.byteLength, sha256: sha256Of(payload), blocks });
}

/** Files of full text end in JSON with the checksum of what is before it, the length of the JSON, and 1337. */
function changeBody(bytes: Uint8Array, change: Change): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isText = bytes.byteLength > 8 && view.getUint32(bytes.byteLength - 4, true) === 1337;
  const end = isText ? bytes.byteLength - 8 - view.getUint32(bytes.byteLength - 8, true) : bytes.byteLength;
  const body = bytes.subarray(0, end);
  change(body);
  if (!isText) return;
  const footer = Buffer.from(bytes.subarray(end, -8)).toString();
  const checked = () => footer.replace(/("crc":)\d+/, (_, name) => `${name}${Bun.hash.crc32(body)}`);
  // JSON may have room for a checksum with fewer digits, and has none for one with more.
  while (checked().length > footer.length) body[0] = (body[0] ?? 0) + 1;
  bytes.set(Buffer.from(checked().padEnd(footer.length)), end);
}

function withCrcs(path: string, text: Uint8Array, crcs: ReadonlyMap<string, number>): Uint8Array {
  const read = JSON.parse(Buffer.from(text).toString()) as { checkpoint: string; crc: number };
  read.checkpoint = read.checkpoint.replaceAll(/("name":"([^"]+)","bytes":\d+,"crc":)\d+/g, (whole, head, name) =>
    crcs.has(join(path, '..', name)) ? `${head}${crcs.get(join(path, '..', name))}` : whole,
  );
  read.crc = Bun.hash.crc32(read.checkpoint);
  return Buffer.from(JSON.stringify(read));
}

interface Answers {
  responses: { status?: number; hits: { total: { value: number; relation: string }; hits: { _id: string }[] } }[];
}

const searches = [
  { full_text_search: { query: 'amber' }, count: true },
  { full_text_search: { query: '"amber birch"' }, count: true },
  { full_text_search: { match_all: {} }, order_by: [{ field: 'n' }], count: true },
  { full_text_search: { match_all: {} }, aggregations: { a: { type: 'terms', field: 'words' } } },
  { embeddings: { v: [1, 0, 0, 0, 0, 0, 0, 0] }, indexes: ['v'] },
  { embeddings: { s: { indices: [3], values: [1] } }, indexes: ['s'] },
];

async function statuses(server: TestServer): Promise<number[]> {
  const answers = await Promise.all([
    ...searches.map((search) => server.send('POST', '/db/v1/tables/t/query', { limit: 5, ...search })),
    server.send('POST', '/db/v1/tables/t/lookup', { filter_query: { term: 'birch', field: 'words' } }),
    server.send('GET', '/db/v1/tables/t/indexes/g/edges?key=k1'),
  ]);
  return answers.map(({ status }) => status);
}

/** A byte in fifty becomes another one. */
function randomBytes(seed: number): Change {
  const random = new SeededRandom(seed);
  return (bytes) => {
    for (let left = bytes.byteLength; left > 0; left -= 50)
      bytes[random.between(0, bytes.byteLength - 1)] = random.between(0, 255);
  };
}

/** Whether every request is answered. None may fail but for one that comes too early. */
async function answersAll(server: TestServer): Promise<boolean> {
  const met = await statuses(server);
  expect(met.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  return met.every((status) => status === 200);
}

function changeSome(bytes: Uint8Array): void {
  for (let at = 3; at < bytes.byteLength; at += 7) bytes[at] = (bytes[at] ?? 0) ^ 0x5a;
}

const changes: [string, Change][] = [
  ['every seventh byte', changeSome],
  ['all zeros', (bytes) => void bytes.fill(0)],
  ['ones at the end', (bytes) => void bytes.fill(0xff, Math.floor(bytes.byteLength / 2))],
];

describe('a native backup whose files of indexes were changed', () => {
  test.each(changes)(
    'to %s is restored, and its indexes are built from the documents before anybody sees them',
    async (_, change) => {
      using place = new BackupPlace();
      await backedUp(place);
      expect(forgeIndexes(place, change)).toBeGreaterThan(4);
      await using server = await place.server();
      const job = await restore(server, { backup_id: 'b', location: place.location });
      expect(job).toMatchObject({ phase: 'succeeded' });
      const found = await server.send<Answers>('POST', '/db/v1/tables/t/query', { ...searches[0], limit: 5 });
      expect(found.body.responses[0]?.hits.total).toEqual({ value: documents / 2, relation: 'exact' });
      expect(await statuses(server)).toEqual(Array(8).fill(200));
    },
    timeout,
  );
});

describe('a native backup whose files of indexes were changed, and their checksums with them', () => {
  test.each([...changes, ...[1, 2, 3].map((seed) => [`random bytes of seed ${seed}`, randomBytes(seed)] as const)])(
    'to %s: what a search fails over is built again from the documents, and every request is answered in the end',
    async (_, change) => {
      using place = new BackupPlace();
      await backedUp(place);
      expect(forgeIndexes(place, change, true)).toBeGreaterThan(4);
      await using server = await place.server();
      expect(await restore(server, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
      await until(() => answersAll(server));
    },
    timeout,
  );
});

describe('files of indexes that were changed while no server ran', () => {
  test.each(changes)(
    'to %s leave every request answered in the end, and the indexes are built again',
    async (_, change) => {
      using directory = new TemporaryDirectory();
      {
        await using server = await startTestServer({ directory: directory.path });
        await fill(server);
      }
      const files = new Bun.Glob('ranges/*/*/indexes/*/*').scanSync({ cwd: directory.path });
      for (const name of [...files].filter((each) => !each.endsWith('checkpoint.json'))) {
        const path = join(directory.path, name);
        const bytes = new Uint8Array(readFileSync(path));
        change(bytes);
        writeFileSync(path, bytes);
      }
      await using server = await startTestServer({ directory: directory.path });
      await until(() => answersAll(server));
    },
    timeout,
  );
});
