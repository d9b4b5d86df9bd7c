import { describe, expect, test } from 'bun:test';
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterManifest, RangeManifest, TableManifest } from '../../../src/backup/archive/manifest.ts';
import { partBody, partForm } from '../../../src/lib/parts/part-body.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { forge, lines, ofPayload, size } from '../../support/forged-backup.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const ofTable = (patch: Partial<TableManifest>) => ({
  table: (table: TableManifest) => void Object.assign(table, patch),
});
const ofRange = (patch: Partial<RangeManifest>) => ({
  table: ({ ranges: [range] }: TableManifest) => void Object.assign(range ?? {}, patch),
});
const ofFile = (patch: Partial<RangeManifest['files'][number]>) => ({
  table: ({ ranges: [range] }: TableManifest) => void Object.assign(range?.files[0] ?? {}, patch),
});
const ofEntry = (patch: Partial<ClusterManifest['tables'][number]>) => ({
  cluster: ({ tables: [table] }: ClusterManifest) => void Object.assign(table ?? {}, patch),
});

const ofCluster = (patch: Partial<ClusterManifest>) => ({
  cluster: (cluster: ClusterManifest) => void Object.assign(cluster, patch),
});

async function backUp(server: TestServer, place: BackupPlace): Promise<void> {
  await server.send('POST', '/db/v1/tables/t');
  await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1 }, b: { n: 2 } } });
  const made = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
  expect(made.body).toMatchObject({ status: 'completed' });
}

const twice = ({ tables }: ClusterManifest): Partial<ClusterManifest> => ({
  tables: [...tables, ...tables],
  expected_table_count: 2,
  completed_table_count: 2,
});

/** Has something else in the place of the only payload. */
function inPlaceOfPayload(place: BackupPlace, make: (path: string) => void): object {
  const path = String(place.files('b').find((name) => name.endsWith('.zst')));
  rmSync(path);
  make(path);
  return {};
}

/** A zstd frame of ten bytes whose head says that there are 10 to the power of 12 of them (RFC 8878, 3.1.1). */
function terabyte(): Uint8Array {
  const frame = new DataView(new ArrayBuffer(17));
  frame.setUint32(0, 0xfd2f_b528, true);
  frame.setUint8(4, 0xe0);
  frame.setBigUint64(5, 10n ** 12n, true);
  // The last block: one byte, ten times.
  frame.setUint8(13, (10 << 3) | (1 << 1) | 1);
  return new Uint8Array(frame.buffer);
}

const image = (path: string) => ({
  path,
  file: { name: 'b/none', bytes: 1, sha256: '0'.repeat(64), blocks: [{ bytes: 1, size: 1, crc: 0 }] },
});
const linksOf = (file: Partial<RangeManifest['files'][number]>) => ({
  index: 'v',
  file: { ...image('').file, ...file },
});
const full = { bytes: 1, size: 8 * 1_024 * 1_024, crc: 0 };
const enrichment = { part_id: 9, name: 'x', state: 'ready', replaced_by: null };
const ofKind = (kind: string) =>
  ofTable({
    last_part_id: 9,
    enrichments: [{ ...enrichment, config: JSON.stringify({ config: { name: 'x', kind, field: '$.n' } }) }],
  });
/** Has the only index say something that is no answer to whether it is in memory alone. */
function withoutOption({ indexes: [index] }: TableManifest): void {
  if (!index) throw new Error('no index');
  const { config, ...rest } = JSON.parse(index.config);
  index.config = JSON.stringify({ ...rest, config: { ...config, mem_only: 'x' } });
}

const cutPart = Buffer.from(partBody(1, partForm.edges, Uint8Array.of(1, 0, 0, 0))).toString('base64');
const withCutPart = `{"id":1,"key":"a","version":1,"parts":{"1":"${cutPart}"},"document":{"n":1}}`;
const one = '{"id":1,"key":"a","version":1,"document":{"n":1}}';
const sameNumber = '{"id":1,"key":"b","version":1,"document":{"n":1}}';
const two = '{"id":2,"key":"a","version":1,"document":{"n":1}}';

describe('a restore of an archive that somebody has forged', () => {
  const bomb = Bun.zstdCompressSync(Buffer.alloc(64 * 1_024 * 1_024, 'a'));
  const cases: [string, (place: BackupPlace) => Parameters<typeof forge>[1]][] = [
    ['a newer format', () => ofTable({ format_version: 4 })],
    ['a table manifest above the location', () => ofEntry({ manifest: '../x' })],
    ['an absolute name', () => ofFile({ name: '/etc/hostname' })],
    ['a payload above the location', () => ofFile({ name: 'b/../../x' })],
    ['a name with a NUL', () => ofFile({ name: 'b/x\0.zst' })],
    ['a table manifest with a NUL', () => ofEntry({ manifest: 'b/x\0.json' })],
    ['a table twice', () => ({ cluster: (cluster: ClusterManifest) => void Object.assign(cluster, twice(cluster)) })],
    ['a payload that is a link', (place) => inPlaceOfPayload(place, (path) => symlinkSync('/etc/hostname', path))],
    ['a payload that is a device', (place) => inPlaceOfPayload(place, (path) => symlinkSync('/dev/zero', path))],
    ['a payload that is a folder', (place) => inPlaceOfPayload(place, (path) => mkdirSync(path))],
    ['a payload that is a pipe', (place) => inPlaceOfPayload(place, (path) => void Bun.spawnSync(['mkfifo', path]))],
    ['a table of a forbidden name', () => ofEntry({ name: '../t' })],
    ['a base above the location', () => ofCluster({ base_backup_id: '../x' })],
    ['a gap between ranges', () => ofRange({ end_key: 'm' })],
    ['a schema that is none', () => ofTable({ settings: '{"schema":{"document_schemas":7}}' })],
    ['settings that are no JSON', () => ofTable({ settings: '{' })],
    ['an enrichment of no kind', () => ofKind('y')],
    ['an index that cannot be opened', () => ({ table: withoutOption })],
    ['no index', () => ofTable({ indexes: [] })],
    ['versions of the far future', () => ofRange({ head: Number.MAX_SAFE_INTEGER })],
    ['more documents than there are', () => ofRange({ documents: 3 })],
    ['an image above the range', () => ofRange({ image: [image('indexes/1/../../x')] })],
    ['an image with an absolute path', () => ofRange({ image: [image('/etc/x')] })],
    ['an image of one path twice', () => ofRange({ image: [image('documents.db'), image('documents.db')] })],
    ['an image without documents', () => ofRange({ image: [image('indexes/1/x')] })],
    ['an image whose file is not there', () => ofRange({ image: [image('documents.db')] })],
    ['links above the location', () => ofRange({ links: [linksOf({ name: 'b/../../x' })] })],
    [
      'more links than any index has',
      () => ofRange({ links: [linksOf({ bytes: 600, blocks: Array(600).fill(full) })] }),
    ],
    ['links of other bytes than their blocks', () => ofRange({ links: [linksOf({ bytes: 2 })] })],
    ['a bomb', (place) => ofPayload(place, bomb, 8 * 1_024 * 1_024)],
    ['a frame that says 1 TB', (place) => ofPayload(place, terabyte(), 8 * 1_024 * 1_024)],
    ['two frames in one block', (place) => ofPayload(place, Buffer.concat([lines(one), bomb]), size(one))],
    ['one key under two numbers', (place) => ofPayload(place, lines(one, two), size(one, two))],
    ['one number for two keys', (place) => ofPayload(place, lines(one, sameNumber), size(one, sameNumber))],
    ['a list of edges that is cut', (place) => ofPayload(place, lines(withCutPart), size(withCutPart), 1)],
    ['lines that are no JSON', (place) => ofPayload(place, lines('x'), size('x'))],
    ['a line without an end', (place) => ofPayload(place, Bun.zstdCompressSync(Buffer.from(one)), one.length)],
  ];

  test('publishes nothing and names the fault', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await backUp(server, place);
    using original = new BackupPlace();
    cpSync(place.path, original.path, { recursive: true });
    await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 'kept' } } });
    for (const [name, changes] of cases) {
      for (const entry of readdirSync(place.path)) rmSync(join(place.path, entry), { recursive: true });
      cpSync(original.path, place.path, { recursive: true });
      forge(place, changes(place));
      const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
      const job = await restore(server, body);
      expect([name, job]).toMatchObject([
        name,
        { phase: 'failed', error: expect.stringContaining('backup_corrupted') },
      ]);
      const kept = await server.send('GET', '/db/v1/tables/t/lookup/a');
      expect([name, kept.body]).toMatchObject([name, { n: 'kept' }]);
    }
    cpSync(original.path, place.path, { recursive: true });
    const ranges = () => readdirSync(join(server.directory, 'ranges')).length;
    expect(ranges()).toBe(1);
    const job = await restore(server, { backup_id: 'b', location: place.location, restore_mode: 'overwrite' });
    expect(job).toMatchObject({ phase: 'succeeded' });
  });
});
