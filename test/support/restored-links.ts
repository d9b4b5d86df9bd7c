import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ArchiveFile, TableManifest } from '../../src/backup/archive/manifest.ts';
import { sha256Of } from '../../src/backup/archive/manifest.ts';
import type { BackupPlace } from './backup-place.ts';
import type { Forgery } from './forged-backup.ts';
import type { TestServer } from './test-server.ts';

/** Gives each range of a backup's table another file of links for an index, and a manifest that fits. */
export function ofLinks(place: BackupPlace, index: string, bytes: Uint8Array): Forgery {
  const frame = Bun.zstdCompressSync(bytes);
  return {
    table: ({ ranges }: TableManifest) => {
      for (const [at, range] of ranges.entries()) {
        const name = `b/forged-${at}.zst`;
        writeFileSync(join(place.path, name), frame);
        const blocks = [{ bytes: frame.byteLength, size: bytes.byteLength, crc: Bun.hash.crc32(frame) }];
        const file: ArchiveFile = { name, bytes: frame.byteLength, sha256: sha256Of(frame), blocks };
        range.links = [{ index, file }];
      }
    },
  };
}

/** The lines that a server has logged of links, the newest last. */
export function linksTold({ logLines }: TestServer): Record<string, unknown>[] {
  const lines = logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return lines.filter(({ kept, left }) => kept !== undefined && left !== undefined);
}
