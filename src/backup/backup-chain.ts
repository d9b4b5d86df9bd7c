import { ServiceError } from '../protocol/service-error.ts';
import {
  type ArchiveFile,
  type ClusterManifest,
  checkBackupId,
  type ImageFile,
  type LinksFile,
  readClusterManifest,
  readTableManifest,
  type TableManifest,
} from './archive/manifest.ts';
import type { ObjectStore } from './stores/object-store.ts';

/** A backup with the manifests of all backups that it leans on, the oldest first. */
export interface BackupChain {
  /** The backup itself. */
  readonly cluster: ClusterManifest;
  /** Backups of the chain, the full one and this one included. */
  readonly length: number;
  /** A table as the backup has it; undefined where it has none of the name. */
  table(name: string): Promise<ChainedTable | undefined>;
  /** The table as it was at the backup; undefined where the backup does not have it. */
  manifest(name: string): Promise<TableManifest | undefined>;
}

/** A table of a backup, with all files that are applied one after the other. */
export interface ChainedTable {
  readonly manifest: TableManifest;
  /** By the number of the range in the manifest. */
  readonly files: readonly (readonly ArchiveFile[])[];
  /** As `files`: what the lines of the files are applied to; undefined where they say everything. */
  readonly images: readonly (readonly ImageFile[] | undefined)[];
  /** As `files`: the links that vectors had when everything was copied. */
  readonly vectorLinks: readonly (readonly LinksFile[])[];
  /** Ids of parts in the files go up to it; of those that an index had which was dropped since, nothing is restored. */
  readonly lastPartId: number;
}

/** Backups of a chain, from a full one to its last increment. */
export const linksMax = 1_000;

/** Throws `backup_not_found`, and `backup_corrupted` which names a base that is missing. */
export async function openChain(store: ObjectStore, backupId: string): Promise<BackupChain> {
  const cluster = await readClusterManifest(store, checkBackupId(backupId));
  if (!cluster) throw new ServiceError('backup_not_found', `there is no complete backup "${backupId}" at the location`);
  const links = [cluster];
  for (let last = cluster; last.base_backup_id !== null; ) {
    const id: string = last.base_backup_id;
    if (links.some((link) => link.backup_id === id)) {
      throw new ServiceError('backup_corrupted', `the backup "${last.backup_id}" leans on "${id}", which leans on it`);
    }
    const base = links.length < linksMax ? await readClusterManifest(store, id) : undefined;
    if (!base) {
      const message = `the backup "${last.backup_id}" has only the changes since "${id}", which is not at the location`;
      throw new ServiceError('backup_corrupted', message);
    }
    links.push(base);
    last = base;
  }
  return {
    cluster,
    length: links.length,
    table: (name) => chainedTable(store, links, name),
    async manifest(name) {
      const entry = cluster.tables.find((each) => each.name === name);
      return entry && readTableManifest(store, entry);
    },
  };
}

async function chainedTable(
  store: ObjectStore,
  links: readonly ClusterManifest[],
  name: string,
): Promise<ChainedTable | undefined> {
  const manifests: TableManifest[] = [];
  for (const link of links) {
    const entry = link.tables.find((each) => each.name === name);
    if (!entry) break;
    manifests.push(await readTableManifest(store, entry));
    if (manifests.at(-1)?.ranges.every(({ base_head }) => base_head === null)) break;
  }
  const [manifest] = manifests;
  if (!manifest) return undefined;
  const ranges = manifest.ranges.map((_, range) => chainOf(manifests, links, range));
  const files = ranges.map((range) => range.files);
  const images = ranges.map((range) => range.image);
  const vectorLinks = ranges.map((range) => range.vectorLinks);
  const lastPartId = Math.max(...manifests.map(({ last_part_id: last }) => last));
  return { manifest, files, images, vectorLinks, lastPartId };
}

/** The parts of what a table has. */
export function partIdsOf({ indexes, enrichments }: TableManifest): number[] {
  return [...indexes, ...enrichments].map(({ part_id: partId }) => partId);
}

/** From the full copy of a range to its last changes; each link begins where the one before it ends. */
function chainOf(
  manifests: readonly TableManifest[],
  links: readonly ClusterManifest[],
  at: number,
): {
  files: ArchiveFile[];
  image: readonly ImageFile[] | undefined;
  vectorLinks: readonly LinksFile[];
} {
  const newest = manifests[0]?.ranges[at];
  const files: ArchiveFile[][] = [];
  for (let link = 0, range = newest; range; link += 1) {
    files.unshift(range.files);
    const { base_head: baseHead, range_id: id, first_sequence: first, image, links: vectorLinks = [] } = range;
    if (baseHead === null) return { files: files.flat(), image, vectorLinks };
    range = manifests[link + 1]?.ranges.find((each) => each.range_id === id && each.first_sequence === first);
    if (range?.head !== baseHead) break;
  }
  const [broken] = links.slice(files.length - 1);
  const base = broken?.base_backup_id ?? '';
  throw new ServiceError(
    'backup_corrupted',
    `the backup "${base}" is not the one that "${broken?.backup_id}" leans on`,
  );
}
