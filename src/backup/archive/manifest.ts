import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { checkTableName } from '../../protocol/names.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { documentsPath, isImagePath } from '../image/image-path.ts';
import { isObjectName, type ObjectStore, readWhole } from '../stores/object-store.ts';

/** Version of the archive: of manifests and payloads together. Older ones are read, newer ones refused by name. */
export const archiveFormat = 3;
/** Bytes of a manifest; that of a table has about 60 for every 4 MiB of it. */
const manifestBytesMax = 64 * 1_024 * 1_024;
/** Uncompressed bytes of a block. */
export const blockBytesMax = 8 * 1_024 * 1_024;
/** Uncompressed bytes of a file of links: those of some 50 million vectors. */
export const linksBytesMax = 4 * 1_024 ** 3;

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Far above what a catalog gives, and far below what it can give. */
const incarnationMax = 2 ** 46;
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const strict = { additionalProperties: false };

const blockSchema = Type.Object(
  {
    /** As they lie in the file. */
    bytes: Type.Integer({ minimum: 1, maximum: 2 * blockBytesMax }),
    /** Uncompressed. */
    size: Type.Integer({ minimum: 1, maximum: blockBytesMax }),
    /** CRC-32 of the bytes in the file. */
    crc: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }),
  },
  strict,
);

const fileSchema = Type.Object({ name: Type.String(), bytes: count, sha256, blocks: Type.Array(blockSchema) }, strict);

const imageFileSchema = Type.Object({ path: Type.String(), file: fileSchema }, strict);

const linksFileSchema = Type.Object({ index: Type.String(), file: fileSchema }, strict);

const rangeSchema = Type.Object(
  {
    start_key: Type.String(),
    end_key: Type.Union([Type.String(), Type.Null()]),
    /** Which range it was: the same numbers are the same life of a range. */
    range_id: count,
    first_sequence: count,
    /** The last change that the backup has. */
    head: count,
    /** Documents of the range at that change. */
    documents: count,
    /** Changes before it are in the base of the backup; null for a copy of everything. */
    base_head: Type.Union([count, Type.Null()]),
    /** In the order in which they are applied. */
    files: Type.Array(fileSchema, { maxItems: 64 }),
    /** The files that the range had, to which the lines are applied; of the format `native`. */
    image: Type.Optional(Type.Array(imageFileSchema, { minItems: 1, maxItems: 100_000 })),
    /** The links between the vectors of indexes; not in archives of the format versions 1 and 2. */
    links: Type.Optional(Type.Array(linksFileSchema, { minItems: 1, maxItems: 10_000 })),
  },
  strict,
);

const tableManifestSchema = Type.Object(
  {
    format_version: Type.Integer({ minimum: 1 }),
    kind: Type.Literal('table'),
    name: Type.String(),
    created_ms: count,
    /** JSON: schema, description and the like. */
    settings: Type.String(),
    last_part_id: Type.Integer({ minimum: 0, maximum: 2 ** 20 }),
    indexes: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          part_id: count,
          /** By which an image has its files; not in archives of the format version 1. */
          incarnation: Type.Optional(Type.Integer({ minimum: 1, maximum: incarnationMax })),
          config: Type.String(),
          state: Type.String(),
        },
        strict,
      ),
    ),
    enrichments: Type.Array(
      Type.Object(
        {
          part_id: count,
          name: Type.String(),
          config: Type.String(),
          state: Type.String(),
          replaced_by: Type.Union([count, Type.Null()]),
        },
        strict,
      ),
    ),
    ranges: Type.Array(rangeSchema, { minItems: 1, maxItems: 4_096 }),
  },
  strict,
);

const clusterManifestSchema = Type.Object(
  {
    format_version: Type.Integer({ minimum: 1 }),
    kind: Type.Literal('cluster'),
    backup_id: Type.String(),
    /** Tells this attempt from every other one of its id. */
    generation: Type.String(),
    timestamp: Type.String(),
    service_version: Type.String(),
    format: Type.Union([Type.Literal('portable'), Type.Literal('native')]),
    base_backup_id: Type.Union([Type.String(), Type.Null()]),
    expected_table_count: count,
    completed_table_count: count,
    tables: Type.Array(Type.Object({ name: Type.String(), manifest: Type.String(), sha256 }, strict), { minItems: 1 }),
  },
  strict,
);

export type TableManifest = Static<typeof tableManifestSchema>;
export type RangeManifest = TableManifest['ranges'][number];
export type ArchiveFile = Static<typeof fileSchema>;
/** A file of links (`native/vector/src/dense/links/link_file.rs`), and the name of their index. */
export type LinksFile = Static<typeof linksFileSchema>;
/** A file of a range, and where it lay in the range's directory. */
export type ImageFile = Static<typeof imageFileSchema>;
export type BackupFormat = ClusterManifest['format'];
export type BlockEntry = Static<typeof blockSchema>;
export type ClusterManifest = Static<typeof clusterManifestSchema>;

const idPattern = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const clusterSuffix = '-cluster-metadata.json';

/** The id when it may be one, else `invalid_request`. */
export function checkBackupId(id: string): string {
  if (idPattern.test(id)) return id;
  const message = '"backup_id" has 1 to 128 letters, digits, ".", "_" or "-", and does not begin with "."';
  throw new ServiceError('invalid_request', message);
}

/** The last object that a backup writes: with it the backup is there. */
export function clusterManifestName(backupId: string): string {
  return `${backupId}${clusterSuffix}`;
}

export function backupIdOf(name: string): string | undefined {
  return name.endsWith(clusterSuffix) ? name.slice(0, -clusterSuffix.length) : undefined;
}

export function tableManifestName(backupId: string, generation: string, table: number): string {
  return `${backupId}/${generation}/table-${table}.json`;
}

/** A file of a range: lines, one of its own as it was (`image`), or links of an index; by its number among those of its kind. */
export function rangeFileName(
  backupId: string,
  generation: string,
  table: number,
  range: number,
  kind: 'lines' | 'image' | 'links',
  file: number,
): string {
  const name = `${backupId}/${generation}/table-${table}-range-${range}`;
  return kind === 'lines' ? `${name}-${file}.ndjson.zst` : `${name}-${kind}-${file}.zst`;
}

/** The number of the table that a file of an attempt belongs to. */
export function tableNumberOf(name: string): number {
  return Number(/\/table-(\d+)[^/]*$/.exec(name)?.[1]);
}

/** A manifest as it is stored: one JSON object, its last member the SHA-256 of the object without it. */
export function encodeManifest(manifest: ClusterManifest | TableManifest): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify(manifest);
  return new TextEncoder().encode(`${text.slice(0, -1)},"checksum":"${sha256Of(text)}"}\n`);
}

export function sha256Of(bytes: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex');
}

/** Undefined when there is no such backup. Throws `backup_corrupted`. */
export async function readClusterManifest(store: ObjectStore, backupId: string): Promise<ClusterManifest | undefined> {
  const name = clusterManifestName(backupId);
  const bytes = await readManifest(store, name);
  if (!bytes) return undefined;
  const manifest = decodeManifest(clusterManifestSchema, name, bytes);
  const names = manifest.tables.map((table) => table.name);
  const isWhole =
    manifest.backup_id === backupId &&
    manifest.completed_table_count === names.length &&
    manifest.expected_table_count === names.length &&
    new Set(names).size === names.length;
  if (!isWhole) throw corrupted(name, 'does not say what it is');
  if (!names.every(isTableName)) throw corrupted(name, 'has a table of a name that none can have');
  const { base_backup_id: base } = manifest;
  if (base !== null && !idPattern.test(base)) throw corrupted(name, 'leans on a backup of an id that none can have');
  return manifest;
}

function isTableName(name: string): boolean {
  try {
    return checkTableName(name) === name;
  } catch {
    return false;
  }
}

/** The manifest of a table that a cluster manifest names. Throws `backup_corrupted`. */
export async function readTableManifest(
  store: ObjectStore,
  { name, manifest: object, sha256: expected }: ClusterManifest['tables'][number],
): Promise<TableManifest> {
  const bytes = isObjectName(object) ? await readManifest(store, object) : undefined;
  if (!bytes) throw corrupted(object, 'is missing');
  if (sha256Of(bytes) !== expected) throw corrupted(object, 'does not match its checksum');
  const manifest = decodeManifest(tableManifestSchema, object, bytes);
  if (manifest.name !== name) throw corrupted(object, 'is of another table');
  checkRanges(manifest, object);
  return manifest;
}

async function readManifest(store: ObjectStore, name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await readWhole(store, name, manifestBytesMax);
  } catch (error) {
    if (error instanceof RangeError) throw corrupted(name, 'is too large');
    throw error;
  }
}

const checksumEnd = /,"checksum":"([0-9a-f]{64})"\}\n$/;

function decodeManifest<Schema extends TSchema>(schema: Schema, name: string, bytes: Uint8Array): Static<Schema> {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const found = checksumEnd.exec(text);
    if (!found) throw corrupted(name, 'has no checksum at its end');
    text = `${text.slice(0, found.index)}}`;
    if (sha256Of(text) !== found[1]) throw corrupted(name, 'does not match its checksum');
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw corrupted(name, 'is not JSON in UTF-8');
  }
  const version = (value as { format_version?: unknown }).format_version;
  if (typeof version === 'number' && version > archiveFormat) {
    const message = `the backup has format ${version}; this release reads formats up to ${archiveFormat}: take a later release`;
    throw new ServiceError('backup_corrupted', message);
  }
  if (!Value.Check(schema, value)) {
    const first = Value.Errors(schema, value).First();
    throw corrupted(name, `has a wrong member ${first?.path ?? ''}`);
  }
  return value;
}

function checkRanges({ ranges, indexes, enrichments, last_part_id: lastPartId }: TableManifest, name: string): void {
  let expected: string | null = '';
  for (const { start_key: start, end_key: end, files, image, links, head, first_sequence: first } of ranges) {
    if (start !== expected) throw corrupted(name, 'has ranges with gaps');
    expected = end;
    for (const file of files) checkFile(file, name);
    if (image) checkImage(image, name);
    for (const { file } of links ?? []) checkLinks(file, name);
    if (head < first - 1) throw corrupted(name, 'has a range that ends before it begins');
  }
  if (expected !== null) throw corrupted(name, 'has ranges with gaps');
  const parts = [...indexes, ...enrichments].map(({ part_id: partId }) => partId);
  if (parts.some((each) => each > lastPartId)) throw corrupted(name, 'has parts that no table has given');
  const incarnations = indexes.flatMap(({ incarnation }) => incarnation ?? []);
  if (new Set(incarnations).size < incarnations.length) throw corrupted(name, 'has one index twice');
}

function checkFile({ name: file, bytes, blocks }: ArchiveFile, name: string): void {
  const sum = blocks.reduce((total, block) => total + block.bytes, 0);
  if (!isObjectName(file) || sum !== bytes) throw corrupted(name, 'names a file wrongly');
}

function checkLinks(file: ArchiveFile, name: string): void {
  checkFile(file, name);
  const bytes = file.blocks.reduce((total, { size }) => total + size, 0);
  if (bytes > linksBytesMax) throw corrupted(name, 'has more links than any index');
}

function checkImage(image: readonly ImageFile[], name: string): void {
  for (const { path, file } of image) {
    if (!isImagePath(path)) throw corrupted(name, 'has a file of a path that no range has');
    checkFile(file, name);
  }
  const paths = new Set(image.map(({ path }) => path));
  if (paths.size < image.length) throw corrupted(name, 'has two files of one path');
  if (!paths.has(documentsPath)) throw corrupted(name, 'has a range without documents');
}

/** `what` goes on from the name of the object. */
export function corrupted(name: string, what: string): ServiceError {
  return new ServiceError('backup_corrupted', `"${name.slice(0, 200)}" of the backup ${what}`);
}
