import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ClusterManifest,
  encodeManifest,
  sha256Of,
  type TableManifest,
} from '../../src/backup/archive/manifest.ts';
import type { BackupPlace } from './backup-place.ts';

/** How the manifests of a backup are changed. */
export interface Forgery {
  table?: (manifest: TableManifest) => void;
  cluster?: (manifest: ClusterManifest) => void;
}

const readManifest = (path: string) => JSON.parse(readFileSync(path, 'utf8'));

/** Writes the backup "b" of one table again with changed manifests, all checksums right. */
export function forge(place: BackupPlace, changes: Forgery): void {
  const path = join(place.path, 'b-cluster-metadata.json');
  const { checksum: _, ...cluster } = readManifest(path) as ClusterManifest & { checksum: string };
  const [entry] = cluster.tables;
  if (!entry) throw new Error('no table');
  const { checksum: __, ...table } = readManifest(join(place.path, entry.manifest)) as TableManifest & {
    checksum: string;
  };
  changes.table?.(table);
  const bytes = encodeManifest(table);
  writeFileSync(join(place.path, entry.manifest), bytes);
  entry.sha256 = sha256Of(bytes);
  changes.cluster?.(cluster);
  writeFileSync(path, encodeManifest(cluster));
}

/** Gives the only range another payload, and a manifest that fits. */
export function ofPayload(place: BackupPlace, payload: Uint8Array, size: number, documents?: number): Forgery {
  return {
    table: ({ ranges: [range] }: TableManifest) => {
      const [file] = range?.files ?? [];
      if (!range || !file) throw new Error('no file');
      writeFileSync(join(place.path, file.name), payload);
      const blocks = [{ bytes: payload.byteLength, size, crc: Bun.hash.crc32(payload) }];
      Object.assign(file, { bytes: payload.byteLength, sha256: sha256Of(payload), blocks });
      if (documents !== undefined) Object.assign(range, { documents });
    },
  };
}

/** Lines as a block of an archive has them. */
export const lines = (...texts: string[]) =>
  Bun.zstdCompressSync(Buffer.from(texts.map((text) => `${text}\n`).join('')));
export const size = (...texts: string[]) => Buffer.from(texts.map((text) => `${text}\n`).join('')).byteLength;
