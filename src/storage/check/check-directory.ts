import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EnrichmentRecord, IndexRecord, RangeRecord, TableRecord } from '../catalog/catalog-records.ts';
import { DataDirectory } from '../directory/data-directory.ts';
import { DataDirectoryError } from '../directory/data-directory-error.ts';
import { checkDataFormat } from '../directory/data-format.ts';
import { DataLock } from '../directory/data-lock.ts';
import { incarnationOf } from '../directory/index-directory.ts';
import { checkCatalog } from './catalog-check.ts';
import { checkRangeFile } from './range-check.ts';

interface Finding {
  /** Table, range or index concerned. */
  where: string;
  message: string;
  /** The document concerned, where it is one. */
  key?: string;
}

export interface CheckReport {
  data_dir: string;
  ok: boolean;
  tables: number;
  ranges: number;
  documents: number;
  indexes: number;
  findings: Finding[];
  /** The repairs that the next start will do by itself. */
  notes: string[];
}

/** The result of verifying the files of an index. */
type IndexVerdict =
  | { kind: 'sound'; sequence: number }
  /** Its files do not hold what they should. */
  | { kind: 'damaged'; message: string }
  /** Its files are of another format or definition; that is not damage. */
  | { kind: 'outdated'; message: string };

/** The checks that only the owner of the indexes can do. */
export interface IndexChecks {
  /** False for an index that lives in memory alone. */
  keepsFiles(record: IndexRecord): boolean;
  /** Verifies the files in `directory`, which may be changed: it is a copy. */
  verify(directory: string, record: IndexRecord, enrichments: readonly EnrichmentRecord[]): Promise<IndexVerdict>;
}

/**
 * Verifies a data directory that no server holds: the catalog, every document and vector, every index. Changes nothing that
 * a server would miss. Fails with `DataDirectoryError` when the directory cannot be checked.
 */
export async function checkDirectory(root: string, indexes: IndexChecks): Promise<CheckReport> {
  const directory = new DataDirectory(root);
  if (!checkDataFormat(directory)) {
    const hint = 'Give the directory of a server with --data-dir.';
    throw new DataDirectoryError('damaged', `${root} holds no data of a server`, hint);
  }
  const lock = DataLock.acquire(directory);
  try {
    return await new DirectoryCheck(directory, indexes).run();
  } finally {
    lock.release();
  }
}

class DirectoryCheck {
  readonly #directory: DataDirectory;
  readonly #indexes: IndexChecks;
  readonly #report: CheckReport;

  constructor(directory: DataDirectory, indexes: IndexChecks) {
    this.#directory = directory;
    this.#indexes = indexes;
    const empty = { tables: 0, ranges: 0, documents: 0, indexes: 0, findings: [], notes: [] };
    this.#report = { data_dir: directory.root, ok: true, ...empty };
  }

  async run(): Promise<CheckReport> {
    const report = this.#report;
    const catalog = checkCatalog(this.#directory);
    report.tables = catalog.tables.length;
    for (const message of catalog.findings) report.findings.push({ where: 'catalog', message });
    report.notes.push(...catalog.notes);
    for (const table of catalog.tables) {
      for (const range of table.ranges) {
        await this.#checkRange(table, range, catalog.acknowledgedHeads.get(range.rangeId));
      }
    }
    report.ok = report.findings.length === 0;
    return report;
  }

  async #checkRange(table: TableRecord, range: RangeRecord, acknowledgedHead = 0): Promise<void> {
    const report = this.#report;
    const { rangeId, generation } = range;
    const path = this.#directory.documentsFile(rangeId, generation);
    report.ranges += 1;
    // Its absence is a finding of the catalog.
    if (!existsSync(path)) return;
    const where = `table "${table.name}", range ${rangeId}`;
    const { findings, documents, head, purgedThrough, isEarlier } = checkRangeFile(path, range);
    report.documents += documents;
    for (const { message, key } of findings)
      report.findings.push({ where, message, ...(key === undefined ? {} : { key }) });
    if (head > 0 && head < acknowledgedHead) {
      const missing = acknowledgedHead - head;
      const message = `it lacks at least ${missing} changes that were acknowledged: its write-ahead log was lost or cut`;
      report.findings.push({ where, message });
    }
    for (const record of table.indexes) {
      report.indexes += 1;
      if (!this.#indexes.keepsFiles(record)) continue;
      const directory = this.#directory.indexesDirectory(rangeId, generation);
      const verify = (copy: string) => this.#indexes.verify(copy, record, table.enrichments);
      const at = { where: `${where}, index "${record.name}"`, head, isPurged: purgedThrough > 0, isEarlier };
      await this.#checkIndex(directory, record, at, verify);
    }
  }

  async #checkIndex(
    indexesDirectory: string,
    record: IndexRecord,
    { where, head, isPurged, isEarlier }: { where: string; head: number; isPurged: boolean; isEarlier: boolean },
    verify: (copy: string) => Promise<IndexVerdict>,
  ): Promise<void> {
    const report = this.#report;
    const isOwn = (name: string) => incarnationOf(name) === record.incarnation;
    const names = existsSync(indexesDirectory) ? readdirSync(indexesDirectory) : [];
    const name = names.find(isOwn);
    if (name === undefined) {
      const message = 'its directory is missing; the next start builds it again';
      // Before the first checkpoint of the range's indexes their directories may go with the power; earlier releases
      // made some with it.
      if (isPurged || (names.length > 0 && !isEarlier)) report.findings.push({ where, message });
      else report.notes.push(`${where}: ${message}`);
      return;
    }
    mkdirSync(this.#directory.temporary, { recursive: true });
    // Opening tidies a directory up, so it is done on links: the directory itself stays as it was found.
    const copy = mkdtempSync(join(this.#directory.temporary, 'check-'));
    try {
      linkFiles(join(indexesDirectory, name), copy);
      const verdict = await verify(copy);
      if (verdict.kind === 'outdated') {
        report.notes.push(`${where}: the next start builds it again: ${verdict.message}`);
      } else if (verdict.kind === 'damaged') {
        report.findings.push({ where, message: `${verdict.message}; the next start builds it again` });
      } else if (head > 0 && verdict.sequence > head) {
        const message = `it holds changes up to ${verdict.sequence}, the range ends at ${head}`;
        report.findings.push({ where, message });
      }
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

function linkFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) {
      mkdirSync(target);
      linkFiles(source, target);
    } else linkOrCopy(source, target);
  }
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    // Not every file system has links.
    copyFileSync(source, target);
  }
}
